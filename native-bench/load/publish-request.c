#include "publish-request.h"

#include "frames.h"
#include "options.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The head of the first stream's request but for its last line break; producers have one stream. */
static struct request head_of_first, body;

static size_t put_msgpack(char *at_body) {
  static const char entry[] = "\x81\xa4" "data\xda"; /* a map of one, the key, and a str 16 */
  size_t at = 0;
  at_body[at++] = '\xdc'; /* array 16 */
  at_body[at++] = (char)(options.batch >> 8);
  at_body[at++] = (char)options.batch;
  for (long i = 0; i < options.batch; i++) {
    memcpy(at_body + at, entry, sizeof entry - 1);
    at += sizeof entry - 1;
    at_body[at++] = (char)(options.event_bytes >> 8);
    at_body[at++] = (char)options.event_bytes;
    fill_payload(at_body + at);
    at += (size_t)options.event_bytes;
  }
  return at;
}

static size_t put_lines(char *at_body) {
  size_t line = (size_t)options.event_bytes + (options.batch > 1);
  for (long i = 0; i < options.batch; i++) {
    char *event = at_body + line * (size_t)i;
    fill_payload(event);
    if (options.batch > 1) event[line - 1] = '\n';
  }
  return line * (size_t)options.batch;
}

static struct request head_of(long stream) {
  const char *type = options.msgpack     ? "application/msgpack"
                     : options.batch > 1 ? "application/x-ndjson"
                                         : "text/plain";
  char suffix[24] = "";
  if (options.streams > 1) snprintf(suffix, sizeof suffix, "-%ld", stream);
  struct request head;
  int length = asprintf(&head.bytes,
                        "POST /v1/streams/%s%s HTTP/1.1\r\nHost: 127.0.0.1:%ld\r\nContent-Type: %s\r\n"
                        "Content-Length: %zu\r\n%s%s",
                        options.stream, suffix, options.port, type, body.length, options.header,
                        *options.header ? "\r\n" : "");
  if (length < 0) fail("no memory");
  head.length = (size_t)length;
  return head;
}

static struct request request_of(const struct request *head, const char *more) {
  size_t more_length = strlen(more);
  struct request request = {.length = head->length + more_length + 2 + body.length};
  request.bytes = allocate(request.length, 1);
  char *at = mempcpy(request.bytes, head->bytes, head->length);
  at = mempcpy(at, more, more_length);
  at = mempcpy(at, "\r\n", 2);
  memcpy(at, body.bytes, body.length);
  return request;
}

void prepare_publish(void) {
  body.bytes = allocate((size_t)options.batch, (size_t)options.event_bytes + 16);
  body.length = options.msgpack ? put_msgpack(body.bytes) : put_lines(body.bytes);
  for (long i = 0; i < options.streams; i++) {
    struct request head = head_of(i);
    load.streams[i].publish = request_of(&head, "");
    if (i == 0) head_of_first = head;
    else free(head.bytes);
  }
  if (options.producer && options.streams > 1) fail("--producer: with one stream only");
}

void renew_producer_request(struct connection *c) {
  char lines[LINE_BYTES];
  snprintf(lines, sizeof lines, "Producer-Id: bench-%d\r\nProducer-Epoch: 0\r\nProducer-Seq: %llu\r\n", c->index,
           c->published++);
  free(c->own.bytes);
  c->own = request_of(&head_of_first, lines);
}
