#include "subscriber.h"

#include "frames.h"
#include "options.h"
#include "window.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Contract 4.2: the priming frame names the position, so it decides which event must be the first. */
static void start_events(struct connection *c) {
  struct cursor *start = &c->stream->start;
  if (start->epoch[0] == '\0') *start = c->start;
  if (strcmp(c->start.epoch, start->epoch) != 0 || c->start.seq != start->seq) {
    fail("subscriber %d: starts at %s.%llu, expected %s.%llu", c->index, c->start.epoch, c->start.seq,
         start->epoch, start->seq);
  }
  c->seq = c->start.seq;
  start_frames(c);
  c->phase = EVENTS;
  load.primed++;
}

static void take_priming(struct connection *c, const char **bytes, size_t *count) {
  const char *text;
  while (c->phase == PRIMING && (text = take_line(&c->text, bytes, count))) {
    const char *id = field_value(text, "id:");
    if (id && !parse_cursor(id, &c->start)) fail("subscriber %d: unreadable: \"%s\"", c->index, text);
    if (field_value(text, "data:") || field_value(text, "event:")) {
      fail("subscriber %d: \"%s\" before the priming frame", c->index, text);
    }
    if (*text == '\0' && c->start.epoch[0] != '\0') start_events(c);
  }
}

static void take_stream(struct connection *c, const char *bytes, size_t count) {
  if (c->phase == PRIMING) take_priming(c, &bytes, &count);
  if (c->phase == EVENTS) match_events(c, bytes, count);
}

static size_t chunk_size(const struct connection *c, const char *text) {
  char *end;
  size_t size = strtoul(text, &end, 16);
  if (end == text || *end != '\0') fail("subscriber %d: no chunk size: \"%s\"", c->index, text);
  if (size == 0) fail("subscriber %d: the server ended the stream", c->index);
  return size;
}

static void take_head(struct connection *c, const char **bytes, size_t *count) {
  while (c->phase == HEAD) {
    const char *text = take_line(&c->http, bytes, count);
    if (!text) return;
    if (field_value(text, "HTTP/") && !field_value(text, "HTTP/1.1 200 ")) {
      fail("subscriber %d: %s\n%.*s", c->index, text, (int)*count, *bytes);
    }
    if (field_value(text, "transfer-encoding: chunked")) c->chunked = true;
    if (*text == '\0') c->phase = PRIMING;
  }
}

void take_answer_of_stream(struct connection *c, const char *bytes, size_t count,
                           void (*take)(struct connection *c, const char *bytes, size_t count)) {
  if (c->phase == HEAD) take_head(c, &bytes, &count);
  if (c->phase != HEAD && !c->chunked) {
    take(c, bytes, count); /* a peer's, which ends with its connection */
    return;
  }
  while (count > 0) {
    if (c->body_left == 0) {
      const char *text = take_line(&c->http, &bytes, &count); /* blank: the break after a chunk's data */
      if (text && *text != '\0') c->body_left = chunk_size(c, text);
      continue;
    }
    size_t length = smaller(count, c->body_left);
    take(c, bytes, length);
    c->body_left -= length;
    bytes += length;
    count -= length;
  }
}

static void take_subscriber(struct connection *c, const char *bytes, size_t count) {
  take_answer_of_stream(c, bytes, count, take_stream);
}

const struct role SUBSCRIBER = {.name = "subscriber", .take = take_subscriber};
static const struct role SLOW_SUBSCRIBER = {.name = "slow subscriber", .take = take_subscriber, .reads_slowly = true};

/* Names in a row, where there are several: NAME-0, NAME-1 and so on. */
void prepare_subscribe(const char *query, const char *cursor) {
  for (long i = 0; i < options.streams; i++) {
    char suffix[24] = "";
    if (options.streams > 1) snprintf(suffix, sizeof suffix, "-%ld", i);
    struct request *request = &load.streams[i].subscribe;
    int length = asprintf(&request->bytes,
                          "GET /v1/streams/%s%s%s HTTP/1.1\r\nHost: 127.0.0.1:%ld\r\n"
                          "Accept: text/event-stream\r\n%s%s%s\r\n",
                          options.stream, suffix, query, options.port, options.header, *options.header ? "\r\n" : "",
                          cursor);
    if (length < 0) fail("no memory");
    request->length = (size_t)length;
  }
}

void open_gently(void (*open)(int index)) {
  load.subscribers = allocate((size_t)options.subscribers, sizeof *load.subscribers);
  u64 deadline_ns = after_ms(STALL_MS);
  for (int i = 0; i < options.subscribers; i++) {
    while (i - load.primed >= options.opening) {
      turn(TURN_MS);
      if (now_ns() > deadline_ns) fail("subscribing: stuck at %ld of %d", load.primed, i);
    }
    open(i);
  }
}

static void open_subscriber(int index) {
  struct stream *stream = stream_of(index);
  open_connection(&load.subscribers[index], &SUBSCRIBER, index, stream, options.port, &stream->subscribe);
}

static bool all_primed(void) { return load.primed == options.subscribers; }
static bool all_slow_primed(void) { return load.primed == options.subscribers + options.slow; }

void open_subscribers_gently(void) {
  prepare_subscribe("?cursor=latest", "");
  open_gently(open_subscriber);
  turn_until(all_primed, 0, "subscribing");
  if (options.slow == 0) return;
  load.slow = allocate((size_t)options.slow, sizeof *load.slow);
  for (int i = 0; i < options.slow; i++) {
    struct stream *stream = stream_of(i);
    open_connection(&load.slow[i], &SLOW_SUBSCRIBER, i, stream, options.port, &stream->subscribe);
  }
  turn_until(all_slow_primed, 0, "subscribing slowly");
}

bool has_all(const struct connection *c) { return c->seq >= c->stream->acked.seq; }

bool all_caught_up(void) {
  while (load.caught_up < options.subscribers && has_all(&load.subscribers[load.caught_up])) load.caught_up++;
  return load.caught_up == options.subscribers;
}

void print_deliveries(u64 deliveries) {
  printf(",\"subscribers\":%ld,\"deliveries\":%llu", options.subscribers, deliveries);
  printf(",\"deliveriesPerSecond\":%.1f", (double)deliveries / window_s());
  printf(",\"megabytesPerSecond\":%.3f", (double)load.received_bytes / 1e6 / window_s());
}
