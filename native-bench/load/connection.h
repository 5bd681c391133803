/*
 * Connections on one epoll, and the loop that reads them. Who is at the end of a connection is its role; all share
 * one receive buffer.
 */
#pragma once

#include "text.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

enum { TURN_MS = 100, STALL_MS = 30 * 1000, RECEIVE_BYTES = 128 * 1024 };

struct connection;

struct role {
  const char *name; /* in what is said when a run fails */
  void (*take)(struct connection *c, const char *bytes, size_t count);
  void (*ended)(struct connection *c);       /* NULL: the server may not end it */
  void (*renew)(struct connection *c);       /* makes `own` the next request; NULL: all are the stream's */
  void (*acknowledged)(struct connection *c); /* looks at what an answer said; NULL: nothing is in it */
  bool reads_slowly;
};

struct request {
  char *bytes;
  size_t length;
};

struct stream {
  struct cursor start; /* where its subscribers must start; the first one decides if no epoch is set */
  struct cursor acked;
  struct request subscribe, publish;
  u64 published; /* requests */
};

enum phase { HEAD, PRIMING, EVENTS, ANSWER_BODY };

struct connection {
  const struct role *role;
  enum phase phase;
  struct stream *stream; /* of a publisher: the one that it publishes to now */
  int fd; /* negative: closed, and opened again for the next request */
  long port;
  int index;
  const struct request *request;
  size_t sent;
  size_t body_left; /* of the chunk, or of the answer */
  bool chunked;
  bool closes; /* the server, after this answer */
  struct line http; /* of the head, or a chunk's size */
  struct line text; /* of the stream; apart from `http`, for a chunk may end within such a line */

  /* Subscriber. `frame` is the one that must come next; `matched` bytes of it have come. */
  char *frame;
  uint32_t frame_length;
  uint32_t id_length;
  uint32_t matched;
  bool in_comment;
  u64 seq; /* of the last whole frame */
  struct cursor start;

  /* Publisher. */
  u64 due_ns; /* when the request went out, or in an open loop should have gone out */
  u64 asked_after_seq;
  struct cursor answer;
  u64 published;
  struct request own;

  /* Of a peer. */
  u64 *counts; /* what a publisher has published to each stream, or a subscriber got from each publisher */
  u64 received;
  long answer_lines; /* of an asker, that have come */
};

struct load {
  u64 received_bytes;
  u64 received_ns; /* of what is being read, where `times_receipts` is set */
  bool times_receipts;

  struct stream *streams;
  struct connection *subscribers, *slow, *publishers;
  long primed, ended;
  long caught_up; /* subscribers[0..caught_up) have all that was acknowledged */
};

extern struct load load;

/* Makes the epoll, and room for the streams. */
void prepare_load(void);

/* Connects to `port`; a request of `c` is sent as soon as the connection stands: on loopback, at once. */
void open_connection(struct connection *c, const struct role *role, int index, struct stream *stream, long port,
                     const struct request *request);

/* By a reset, which leaves no TIME_WAIT: runs in a row would be short of ports. */
void close_connections(struct connection *connections, long count);

/* Opens a closed one again. */
void reopen(struct connection *c);

/* The end of a large request must not wait for the acknowledgement of its beginning. */
void send_without_delay(const struct connection *c);

/* What of the request has not been sent; the rest follows when the socket takes it. */
void send_request(struct connection *c);

/* Passes over the body of an answer, as far as it is there. Returns whether that was all of it. */
bool skip_body(struct connection *c, const char **bytes, size_t *count);

void turn(int timeout_ms);

/* Waits for something to read, but no longer than until `until_ns`; epoll_wait(2) knows milliseconds only. */
void turn_before(u64 until_ns);

/* `expected_ms` is what it may rightly take until `done`; what stalls for longer than that ends the run. */
void turn_until(bool (*done)(void), long expected_ms, const char *what);

/* Lets everything in flight arrive, off the clock: also an event that is one too many. */
void settle(void);

/* Until there is something on stdin, or its end. */
bool has_input(void);
void hold_until_input_ends(void);

struct sockaddr_in loopback(uint32_t host, long port);
void set_option(int fd, int level, int name, const void *value, socklen_t length);
struct stream *stream_of(int subscriber);
