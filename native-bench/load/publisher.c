#include "publisher.h"

#include "options.h"
#include "publish-request.h"
#include "window.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void (*on_publish)(const struct connection *c);

static struct {
  long asking; /* publishers whose answer is outstanding */
  u64 publishes, publishes_max, until_ns;
  struct connection **idle; /* in an open loop: publishers that wait for the next event to be due */
  long idle_count;
  struct histogram latencies;
} publishing;

void forget_publishes(void) {
  publishing.publishes = 0;
  publishing.latencies = (struct histogram){0};
}

u64 publishes(void) { return publishing.publishes; }
u64 published_events(void) { return publishing.publishes * (u64)options.batch; }
long answers_missing(void) { return publishing.asking; }

static void publish(struct connection *c, u64 due_ns) {
  c->stream = &load.streams[publishing.publishes++ % (u64)options.streams];
  c->stream->published++;
  publishing.asking++;
  c->asked_after_seq = c->stream->acked.seq;
  c->due_ns = due_ns;
  if (c->role->renew) c->role->renew(c);
  c->request = c->own.bytes ? &c->own : &c->stream->publish;
  c->sent = 0;
  if (c->fd < 0) reopen(c);
  send_request(c);
}

/* I6: what was acknowledged before this publish began has smaller seqs than all of its events. */
static void check_acknowledgement(struct connection *c) {
  if (c->answer.epoch[0] == '\0') fail("publisher %d: the answer has no Gapless-Cursor", c->index);
  if (c->answer.seq < c->asked_after_seq + (u64)options.batch) {
    fail("publisher %d: acknowledged up to seq %llu after %llu was", c->index, c->answer.seq, c->asked_after_seq);
  }
  struct cursor *acked = &c->stream->acked;
  bool is_first = acked->epoch[0] == '\0';
  if (!is_first && strcmp(c->answer.epoch, acked->epoch) != 0) fail("the stream's epoch has changed");
  if (c->answer.seq > acked->seq) *acked = c->answer;
  if (on_publish) on_publish(c);
  c->answer.epoch[0] = '\0';
}

void take_answer(struct connection *c) {
  u64 now = now_ns();
  record_latency(&publishing.latencies, now - c->due_ns);
  publishing.asking--;
  if (c->role->acknowledged) c->role->acknowledged(c);
  c->phase = HEAD;
  if (c->closes) close_connections(c, 1);
  if (publishing.idle) publishing.idle[publishing.idle_count++] = c;
  else if (now < publishing.until_ns && publishing.publishes < publishing.publishes_max) publish(c, now);
}

static void take_answer_head(struct connection *c, const char *text, const char *rest, size_t rest_length) {
  const char *value;
  if (*text == '\0') {
    c->phase = ANSWER_BODY;
  } else if ((value = field_value(text, "content-length:"))) {
    c->body_left = strtoul(value, NULL, 10);
  } else if ((value = field_value(text, "gapless-cursor:"))) {
    if (!parse_cursor(value, &c->answer)) fail("publisher %d: unreadable: \"%s\"", c->index, text);
  } else if (field_value(text, "connection: close")) {
    c->closes = true;
  } else if (field_value(text, "HTTP/") && !field_value(text, "HTTP/1.1 20")) {
    fail("publisher %d: %s\n%.*s", c->index, text, (int)rest_length, rest);
  } else if (field_value(text, "gapless-duplicate:")) {
    fail("publisher %d: taken for a repeat", c->index);
  }
}

void take_answer_bytes(struct connection *c, const char *bytes, size_t count) {
  for (;;) {
    if (c->phase == ANSWER_BODY) {
      if (!skip_body(c, &bytes, &count)) return;
      take_answer(c);
    }
    const char *text = take_line(&c->http, &bytes, &count);
    if (!text) return;
    take_answer_head(c, text, bytes, count);
  }
}

static const struct role PUBLISHER = {
    .name = "publisher", .take = take_answer_bytes, .acknowledged = check_acknowledgement};
static const struct role PRODUCER = {.name = "publisher",
                                     .take = take_answer_bytes,
                                     .renew = renew_producer_request,
                                     .acknowledged = check_acknowledgement};

void open_publishers(void) {
  prepare_publish();
  load.publishers = allocate((size_t)options.publishers, sizeof *load.publishers);
  for (int i = 0; i < options.publishers; i++) {
    struct connection *c = &load.publishers[i];
    open_connection(c, options.producer ? &PRODUCER : &PUBLISHER, i, NULL, options.port, NULL);
    send_without_delay(c);
  }
}

static bool all_answered(void) { return publishing.asking == 0; }

void publish_all(long duration_ms, u64 publishes_max) {
  publishing.publishes_max = publishes_max;
  publishing.until_ns = after_ms(duration_ms);
  for (long i = 0; i < options.publishers && publishing.publishes < publishes_max; i++) {
    publish(&load.publishers[i], now_ns());
  }
  turn_until(all_answered, duration_ms, "waiting for the publishers' answers");
}

void publish_on_time(u64 count) {
  publishing.idle = allocate((size_t)options.publishers, sizeof *publishing.idle);
  for (long i = 0; i < options.publishers; i++) publishing.idle[publishing.idle_count++] = &load.publishers[i];
  u64 began_ns = now_ns(), interval_ns = 1000000000u / (u64)options.rate;
  u64 deadline_ns = began_ns + interval_ns * count + (u64)STALL_MS * 1000000u;
  for (u64 next = 0; next < count || publishing.asking > 0;) {
    u64 now = now_ns(), due_ns = began_ns + interval_ns * next;
    bool is_left = next < count;
    if (now > deadline_ns) fail("publishing at a rate: %ld answers are missing", publishing.asking);
    if (is_left && due_ns <= now && publishing.idle_count > 0) {
      publish(publishing.idle[--publishing.idle_count], due_ns);
      next++;
    } else {
      turn_before(is_left && due_ns > now ? due_ns : now + (u64)TURN_MS * 1000000u);
    }
  }
}

void print_publishing(void) {
  printf(",\"publishers\":%ld,\"batch\":%ld", options.publishers, options.batch);
  printf(",\"eventBytes\":%ld", options.event_bytes);
  printf(",\"publishes\":%llu", publishing.publishes);
  printf(",\"publishesPerSecond\":%.1f", (double)publishing.publishes / window_s());
  printf(",\"publishLatencyP50Us\":%.1f,\"publishLatencyP99Us\":%.1f", latency_us(&publishing.latencies, 50),
         latency_us(&publishing.latencies, 99));
}
