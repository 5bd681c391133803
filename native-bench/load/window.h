/*
 * What the clock covers. The processor time of both sides is read at the same moments, in nanoseconds and
 * for all threads of their processes, so a storm of 30 ms is as readable as a run of 30 s.
 */
#pragma once

#include "process.h"

#include <sys/types.h>

/* Called once for each process of the server; 8 at most. */
void watch_server(pid_t pid);

/* Of `--server-pids`. */
void watch_servers(const char *pids);

void begin_window(void);

/* Windows of one run are added up. */
void end_window(void);

u64 window_began_ns(void);
double window_s(void);

/* Opens the line of JSON; the modes add their own numbers and close it. */
void print_window(const char *mode);
