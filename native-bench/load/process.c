#include "process.h"

#include <errno.h>
#include <sched.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

void fail(const char *format, ...) {
  va_list arguments;
  va_start(arguments, format);
  fputs("load: ", stderr);
  vfprintf(stderr, format, arguments);
  fputc('\n', stderr);
  va_end(arguments);
  exit(1);
}

void *allocate(size_t count, size_t bytes) {
  void *memory = calloc(count, bytes);
  if (!memory) fail("no memory for %zu x %zu bytes", count, bytes);
  return memory;
}

size_t smaller(size_t a, size_t b) { return a < b ? a : b; }

u64 read_clock_ns(clockid_t clock) {
  struct timespec at;
  if (clock_gettime(clock, &at) != 0) fail("cannot read a clock: %s", strerror(errno));
  return (u64)at.tv_sec * 1000000000u + (u64)at.tv_nsec;
}

u64 now_ns(void) { return read_clock_ns(CLOCK_MONOTONIC); }

u64 after_ms(long ms) { return now_ns() + (u64)ms * 1000000u; }

void pin_to(long cpu) {
  if (cpu < 0) return;
  cpu_set_t cpus;
  CPU_ZERO(&cpus);
  CPU_SET((size_t)cpu, &cpus);
  if (sched_setaffinity(0, sizeof cpus, &cpus) != 0) fail("cannot run on cpu %ld: %s", cpu, strerror(errno));
}

void need_descriptors(unsigned long needed) {
  struct rlimit limit;
  getrlimit(RLIMIT_NOFILE, &limit);
  limit.rlim_cur = limit.rlim_max;
  setrlimit(RLIMIT_NOFILE, &limit);
  unsigned long allowed = (unsigned long)limit.rlim_cur;
  if (needed > allowed) fail("needs %lu descriptors, may open %lu", needed, allowed);
}
