/* The process around the load: how it fails, where it runs, what it may open, and its clocks. */
#pragma once

#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif

#include <stddef.h>
#include <time.h>

typedef unsigned long long u64; /* unlike uint64_t, what %llu prints everywhere */

/* Ends the run without a number: exit code 1, and why on stderr. */
__attribute__((noreturn, format(printf, 1, 2))) void fail(const char *format, ...);

/* Zeroed. */
void *allocate(size_t count, size_t bytes);

size_t smaller(size_t a, size_t b);

u64 read_clock_ns(clockid_t clock);
u64 now_ns(void);
u64 after_ms(long ms);

/* Negative: anywhere. */
void pin_to(long cpu);

/* Raises the limit as far as it goes; fails if that is below `needed`. */
void need_descriptors(unsigned long needed);
