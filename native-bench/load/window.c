#include "window.h"

#include <stdio.h>
#include <stdlib.h>

enum { SERVERS_MAX = 8 };

static struct {
  clockid_t server_clocks[SERVERS_MAX];
  int servers;
  u64 began_ns, server_began_ns, load_began_ns;
  u64 wall_ns, server_ns, load_ns;
} window;

void watch_server(pid_t pid) {
  if (window.servers == SERVERS_MAX) fail("more than %d processes to watch", SERVERS_MAX);
  if (clock_getcpuclockid(pid, &window.server_clocks[window.servers++]) != 0) fail("no process %d to watch", (int)pid);
}

void watch_servers(const char *pids) {
  for (const char *at = pids; at && *at;) {
    char *end;
    watch_server((pid_t)strtol(at, &end, 10));
    if (end == at || (*end != '\0' && *end != ',')) fail("--server-pids: \"%s\"", pids);
    at = end + (*end == ',');
  }
}

static u64 server_ns(void) {
  u64 sum = 0;
  for (int i = 0; i < window.servers; i++) sum += read_clock_ns(window.server_clocks[i]);
  return sum;
}

void begin_window(void) {
  window.server_began_ns = server_ns();
  window.load_began_ns = read_clock_ns(CLOCK_PROCESS_CPUTIME_ID);
  window.began_ns = now_ns();
}

void end_window(void) {
  window.wall_ns += now_ns() - window.began_ns;
  window.load_ns += read_clock_ns(CLOCK_PROCESS_CPUTIME_ID) - window.load_began_ns;
  window.server_ns += server_ns() - window.server_began_ns;
}

u64 window_began_ns(void) { return window.began_ns; }

double window_s(void) { return (double)window.wall_ns / 1e9; }

void print_window(const char *mode) {
  printf("{\"mode\":\"%s\",\"seconds\":%.6f", mode, window_s());
  printf(",\"loadCpu\":%.3f", (double)window.load_ns / (double)window.wall_ns);
  if (window.servers > 0) printf(",\"serverCpu\":%.3f", (double)window.server_ns / (double)window.wall_ns);
}
