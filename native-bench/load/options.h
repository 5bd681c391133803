/* The command line: modes, and options that all of them share. */
#pragma once

#include <stdbool.h>

struct mode {
  const char *name;
  void (*run)(void);
  bool needs_server;
  const char *doc;
};

struct options {
  const char *stream;
  const char *header;                                                 /* a line of each request to the broker */
  const char *publish_path, *subscribe_path, *body_before, *body_after; /* of a peer */
  const char *preface, *request, *answer_prefix;                      /* of `ask` */
  const char *server_pids;
  long port, publish_port, cpu, sender_cpu, msgpack, producer;
  long streams, subscribers, slow, publishers, events, event_bytes, batch, opening, duration_ms, times, rate, spread_ms,
      answer_lines;
};

extern struct options options;

/* Fills `options`; on a command line that it does not understand, explains it and exits with 2. */
const struct mode *read_command(int count, char **arguments, const struct mode *modes, int mode_count);
