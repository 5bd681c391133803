#include "frames.h"

#include "options.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void (*on_delivery)(u64 seq);

static struct request tail;

void fill_payload(char *bytes) {
  static const char text[] = "{\"delta\":\"the quick brown fox jumps over the lazy dog\"} ";
  for (long i = 0; i < options.event_bytes; i++) bytes[i] = text[(size_t)i % (sizeof text - 1)];
}

void prepare_frames(void) {
  static const char name[] = "data: ";
  tail.length = sizeof name - 1 + (size_t)options.event_bytes + 2;
  tail.bytes = allocate(tail.length, 1);
  memcpy(tail.bytes, name, sizeof name - 1);
  fill_payload(tail.bytes + sizeof name - 1);
  memcpy(tail.bytes + tail.length - 2, "\n\n", 2);
}

const struct request *frame_tail(void) { return &tail; }

static void write_frame(struct connection *c) {
  char id[ID_LINE_BYTES];
  int length = snprintf(id, sizeof id, "id: %s.%llu\n", c->stream->start.epoch, c->seq + 1);
  c->id_length = (uint32_t)length;
  c->frame_length = c->id_length + (uint32_t)tail.length;
  memcpy(mempcpy(c->frame, id, c->id_length), tail.bytes, tail.length);
}

void start_frames(struct connection *c) {
  c->frame = allocate(ID_LINE_BYTES + tail.length, 1);
  write_frame(c);
}

/* The frame that had to come has come: counts the id up where it stands. */
static void expect_next(struct connection *c) {
  c->matched = 0;
  c->seq++;
  if (on_delivery) on_delivery(c->seq);
  char *digit = c->frame + c->id_length - 2;
  while (*digit == '9') *digit-- = '0';
  if (*digit == '.') {
    write_frame(c); /* 99 becomes 100, a longer line */
  } else {
    ++*digit;
  }
}

/* Something else came than the frame that had to: says which id, if enough of it is here to be read. */
__attribute__((noreturn)) static void fail_frame(const struct connection *c, const char *bytes, size_t count) {
  char seen[2 * ID_LINE_BYTES + 1];
  size_t matched = smaller(c->matched, c->id_length);
  size_t fresh = c->matched < c->id_length ? smaller(count, ID_LINE_BYTES) : 0;
  memcpy(seen, c->frame, matched);
  memcpy(seen + matched, bytes, fresh);
  seen[matched + fresh] = '\0';

  u64 expected = c->seq + 1;
  struct cursor got;
  const char *id = strchr(seen, '\n') ? field_value(seen, "id:") : NULL;
  if (id && parse_cursor(id, &got) && got.seq != expected) {
    const char *fault = got.seq > expected ? "gap" : "duplicate";
    fail("subscriber %d: %s: expected %s.%llu, got %s.%llu", c->index, fault, c->stream->start.epoch, expected,
         got.epoch, got.seq);
  }
  fail("subscriber %d: byte %u of the frame of %s.%llu is wrong: \"%.*s\"", c->index, c->matched,
       c->stream->start.epoch, expected, (int)smaller(count, 80), bytes);
}

/* Hot: a few nanoseconds a frame. */
void match_events(struct connection *c, const char *bytes, size_t count) {
  while (count > 0) {
    size_t length;
    if (c->in_comment) {
      const char *feed = memchr(bytes, '\n', count);
      length = feed ? (size_t)(feed - bytes) + 1 : count;
      c->in_comment = feed == NULL;
    } else if (c->matched == 0 && (*bytes == ':' || *bytes == '\n')) {
      length = 1; /* contract 4.3: a heartbeat, or the blank line after it */
      c->in_comment = *bytes == ':';
    } else {
      length = smaller(count, c->frame_length - c->matched);
      if (memcmp(c->frame + c->matched, bytes, length) != 0) fail_frame(c, bytes, count);
      c->matched += (uint32_t)length;
      if (c->matched == c->frame_length) expect_next(c);
    }
    bytes += length;
    count -= length;
  }
}
