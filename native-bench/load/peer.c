/*
 * Any server that publishes by POST and delivers by SSE. Peers have ids of their own kind, or none, so what they
 * deliver is verified by its data: publisher, number and when it was due, then padding. Of each publisher a
 * subscriber must get 0, 1, 2 and so on of its stream.
 */
#include "modes.h"
#include "options.h"
#include "publisher.h"
#include "subscriber.h"
#include "window.h"

#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>

#define PEER_DATA "%04d %010llu %020llu "
enum { PEER_DATA_BYTES = 4 + 1 + 10 + 1 + 20 + 1, PEER_HEAD_BYTES = 512 };

static struct histogram delivery_latencies;
static char **publish_paths;

static void renew_request(struct connection *c) {
  char head[PEER_HEAD_BYTES], data[PEER_DATA_BYTES + 1];
  long stream = c->stream - load.streams;
  size_t before = strlen(options.body_before), after = strlen(options.body_after);
  size_t event = (size_t)options.event_bytes;
  int length = snprintf(head, sizeof head,
                        "POST %s HTTP/1.1\r\nHost: 127.0.0.1:%ld\r\nContent-Type: text/plain\r\n"
                        "Content-Length: %zu\r\n\r\n",
                        publish_paths[stream], c->port, before + event + after);
  if (length >= (int)sizeof head) fail("--publish-path is too long");
  snprintf(data, sizeof data, PEER_DATA, c->index, c->counts[stream]++, c->due_ns);
  if (!c->own.bytes) c->own.bytes = allocate(sizeof head + before + event + after, 1);
  char *at = mempcpy(c->own.bytes, head, (size_t)length);
  at = mempcpy(at, options.body_before, before);
  memset(at, '.', event);
  memcpy(at, data, PEER_DATA_BYTES);
  memcpy(at + event, options.body_after, after);
  c->own.length = (size_t)length + before + event + after;
}

/* So many digits and the blank after them; advances. False if something else is there. */
static bool take_number(const char **text, int digits, u64 *number) {
  *number = 0;
  for (int i = 0; i < digits; i++) {
    unsigned digit = (unsigned)((*text)[i] - '0');
    if (digit > 9) return false;
    *number = *number * 10 + digit;
  }
  *text += digits + 1;
  return (*text)[-1] == ' ';
}

/* Hot: with some millions of events a second this is what the load client does. */
static void take_line_of_stream(struct connection *c, const char *text, size_t length) {
  static const char name[] = "data:";
  if (length < sizeof name - 1 || memcmp(text, name, sizeof name - 1) != 0) return;
  const char *data = text + sizeof name - 1;
  data += *data == ' ';
  const char *at = data;
  u64 publisher, number, due_ns;
  if (length - (size_t)(data - text) != (size_t)options.event_bytes || !take_number(&at, 4, &publisher) ||
      !take_number(&at, 10, &number) || !take_number(&at, 20, &due_ns) || publisher >= (u64)options.publishers) {
    fail("subscriber %d: foreign data: \"%.*s\"", c->index, (int)length, text);
  }
  if (number != c->counts[publisher]) {
    fail("subscriber %d: %s: expected %llu of publisher %llu, got %llu", c->index,
         number > c->counts[publisher] ? "gap" : "duplicate", c->counts[publisher], publisher, number);
  }
  c->counts[publisher]++;
  c->received++;
  record_latency(&delivery_latencies, load.received_ns - due_ns);
}

static void take_lines(struct connection *c, const char *bytes, size_t count) {
  while (count > 0) {
    const char *feed = c->text.length == 0 ? memchr(bytes, '\n', count) : NULL;
    if (!feed) { /* a piece of a line */
      const char *text = take_line(&c->text, &bytes, &count);
      if (text) take_line_of_stream(c, text, strlen(text));
      continue;
    }
    size_t length = (size_t)(feed - bytes);
    take_line_of_stream(c, bytes, length - (length > 0 && feed[-1] == '\r'));
    bytes += length + 1;
    count -= length + 1;
  }
}

static void take_subscriber(struct connection *c, const char *bytes, size_t count) {
  bool had_head = c->phase != HEAD;
  take_answer_of_stream(c, bytes, count, take_lines);
  if (!had_head && c->phase != HEAD) load.primed++;
}

static const struct role SUBSCRIBER_OF_PEER = {.name = "subscriber", .take = take_subscriber};
static const struct role PUBLISHER_OF_PEER = {
    .name = "publisher", .take = take_answer_bytes, .renew = renew_request};

static void prepare_paths(void) {
  publish_paths = allocate((size_t)options.streams, sizeof *publish_paths);
  for (long i = 0; i < options.streams; i++) {
    publish_paths[i] = numbered(options.publish_path, i);
    char *path = numbered(options.subscribe_path, i);
    struct request *request = &load.streams[i].subscribe;
    int length = asprintf(&request->bytes,
                          "GET %s HTTP/1.1\r\nHost: 127.0.0.1:%ld\r\nAccept: text/event-stream\r\n\r\n", path,
                          options.port);
    if (length < 0) fail("no memory");
    request->length = (size_t)length;
  }
}

static void open_subscriber(int index) {
  struct connection *c = &load.subscribers[index];
  struct stream *stream = stream_of(index);
  open_connection(c, &SUBSCRIBER_OF_PEER, index, stream, options.port, &stream->subscribe);
  c->counts = allocate((size_t)options.publishers, sizeof *c->counts);
}

static void open_publishers_of_peer(void) {
  load.publishers = allocate((size_t)options.publishers, sizeof *load.publishers);
  for (int i = 0; i < options.publishers; i++) {
    struct connection *c = &load.publishers[i];
    open_connection(c, &PUBLISHER_OF_PEER, i, NULL, options.publish_port ? options.publish_port : options.port, NULL);
    c->counts = allocate((size_t)options.streams, sizeof *c->counts);
    send_without_delay(c);
  }
}

static bool all_primed(void) { return load.primed == options.subscribers; }

static bool all_received(void) {
  for (; load.caught_up < options.subscribers; load.caught_up++) {
    const struct connection *c = &load.subscribers[load.caught_up];
    if (c->received < c->stream->published) return false;
  }
  return true;
}

static u64 deliveries_of_all(void) {
  u64 deliveries = 0;
  for (long i = 0; i < options.subscribers; i++) {
    const struct connection *c = &load.subscribers[i];
    if (c->received != c->stream->published) fail("subscriber %ld: an event is too many", i);
    deliveries += c->received;
  }
  return deliveries;
}

static void prepare(void) {
  if (!options.publish_path || !options.subscribe_path) fail("needed: --publish-path and --subscribe-path");
  if (options.event_bytes < PEER_DATA_BYTES) fail("--event-bytes: at least %d", PEER_DATA_BYTES);
  prctl(PR_SET_TIMERSLACK, 1, 0, 0, 0);
  load.times_receipts = true;
  prepare_paths();
}

/* In a closed loop, or with --rate an open one. */
void run_peer(void) {
  prepare();
  open_gently(open_subscriber);
  turn_until(all_primed, 0, "subscribing");
  open_publishers_of_peer();
  settle(); /* not every server that has sent the head delivers by then */
  load.received_bytes = 0;

  begin_window();
  if (options.rate > 0) publish_on_time((u64)options.rate * (u64)options.duration_ms / 1000);
  else publish_all(options.duration_ms, UINT64_MAX);
  turn_until(all_received, 0, "waiting for the last deliveries");
  end_window();
  settle();

  u64 deliveries = deliveries_of_all();
  close_connections(load.subscribers, options.subscribers);
  close_connections(load.publishers, options.publishers);
  print_window("peer");
  print_publishing();
  print_deliveries(deliveries);
  printf(",\"deliveryP50Us\":%.1f,\"deliveryP99Us\":%.1f}\n", latency_us(&delivery_latencies, 50),
         latency_us(&delivery_latencies, 99));
}

/* All come at once for what there is from the beginning. The clock runs from the first connect to the last byte. */
void run_peer_storm(void) {
  prepare();
  open_publishers_of_peer();
  publish_all(STALL_MS, (u64)options.events);
  close_connections(load.publishers, options.publishers);
  load.subscribers = allocate((size_t)options.subscribers, sizeof *load.subscribers);
  load.received_bytes = 0;

  begin_window();
  for (int i = 0; i < options.subscribers; i++) open_subscriber(i);
  turn_until(all_received, 0, "catching up");
  end_window();
  settle();

  u64 deliveries = deliveries_of_all();
  close_connections(load.subscribers, options.subscribers);
  print_window("peer-storm");
  print_deliveries(deliveries);
  puts("}");
}
