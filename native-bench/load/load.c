/*
 * The load side of the bench: subscribers and publishers on one thread and one epoll, every frame
 * verified.
 *
 * It has to be much cheaper than the broker that it measures. All connections share one receive buffer,
 * and a frame is verified by comparing it with the only frame that may come next: a memcmp checks id and
 * content, with no parse, no copy and no reassembly, wherever recv(2) or a chunk of the transfer coding
 * cuts it.
 *
 * stdout: one line of JSON. Exit 0: measured and verified. 1: a gap, a duplicate, foreign bytes, a
 * refusal, a lost connection or a timeout, and then there is no number. 2: usage.
 */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <ctype.h>
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sched.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

typedef unsigned long long u64; /* unlike uint64_t, what %llu prints everywhere */

enum {
  RECEIVE_BYTES = 128 * 1024,
  LINE_BYTES = 512,
  EPOCH_BYTES = 16,
  ID_LINE_BYTES = 48, /* "id: ", the epoch, '.', at most 20 digits, a line feed and a NUL */
  TURN_EVENTS = 512,
  TURN_MS = 100,
  UNPRIMED_MAX = 128, /* below any listen backlog: setting up must not run into SYN retransmission */
  SLOW_MS = 20,
  SLOW_BYTES = 2048, /* what a slow reader takes every SLOW_MS */
  STALL_MS = 30 * 1000,
  SETTLE_MS = 100,
  PORTS_PER_ADDRESS = 20 * 1000,
  DESCRIPTORS_SPARE = 16,
};

static struct {
  const char *stream;
  const char *publish_path, *subscribe_path;     /* of a peer */
  const char *preface, *request, *answer_prefix; /* of `ask` */
  long port, server_pid, cpu, sender_cpu, msgpack;
  long streams, subscribers, slow, publishers, events, event_bytes, batch, duration_ms, times, rate, spread_ms, answer_lines;
} options = {
    .stream = "bench", .cpu = -1, .sender_cpu = -1, .streams = 1, .subscribers = 500, .publishers = 1, .events = 1000,
    .event_bytes = 100, .batch = 1, .duration_ms = 3000, .times = 1,
    .rate = 100, .spread_ms = 2000,
};

__attribute__((noreturn, format(printf, 1, 2))) static void fail(const char *format, ...) {
  va_list arguments;
  va_start(arguments, format);
  fputs("load: ", stderr);
  vfprintf(stderr, format, arguments);
  fputc('\n', stderr);
  va_end(arguments);
  exit(1);
}

static void *allocate(size_t count, size_t bytes) {
  void *memory = calloc(count, bytes);
  if (!memory) fail("no memory for %zu x %zu bytes", count, bytes);
  return memory;
}

static size_t smaller(size_t a, size_t b) { return a < b ? a : b; }

static u64 read_clock_ns(clockid_t clock) {
  struct timespec at;
  if (clock_gettime(clock, &at) != 0) fail("cannot read a clock: %s", strerror(errno));
  return (u64)at.tv_sec * 1000000000u + (u64)at.tv_nsec;
}

static u64 now_ns(void) { return read_clock_ns(CLOCK_MONOTONIC); }

static u64 after_ms(long ms) { return now_ns() + (u64)ms * 1000000u; }

static void pin_to(long cpu) {
  if (cpu < 0) return;
  cpu_set_t cpus;
  CPU_ZERO(&cpus);
  CPU_SET((size_t)cpu, &cpus);
  if (sched_setaffinity(0, sizeof cpus, &cpus) != 0) fail("cannot run on cpu %ld: %s", cpu, strerror(errno));
}

/*
 * Latencies in log-linear buckets, 32 to each power of two: a percentile is right within 3 %, and the
 * memory does not depend on how long the run is.
 */
enum {
  BUCKET_BITS = 5,
  BUCKETS_PER_POWER = 1 << BUCKET_BITS,
  BUCKETS = (65 - BUCKET_BITS) * BUCKETS_PER_POWER,
};

struct histogram {
  u64 count;
  u64 buckets[BUCKETS];
};

static struct histogram publish_latencies, delivery_latencies;

static void record_latency(struct histogram *latencies, u64 ns) {
  unsigned shift = ns < BUCKETS_PER_POWER ? 0 : 63 - BUCKET_BITS - (unsigned)__builtin_clzll(ns);
  latencies->buckets[shift * BUCKETS_PER_POWER + (ns >> shift)]++;
  latencies->count++;
}

/* The upper bound of the bucket that holds the percentile, in microseconds. */
static double latency_us(const struct histogram *latencies, double percentile) {
  u64 rank = (u64)((double)latencies->count * percentile / 100), seen = 0;
  if (rank == latencies->count) rank--; /* the longest */
  for (unsigned i = 0; i < BUCKETS; i++) {
    seen += latencies->buckets[i];
    if (seen <= rank) continue;
    unsigned shift = i < 2 * BUCKETS_PER_POWER ? 0 : i / BUCKETS_PER_POWER - 1;
    return (double)((u64)(i - shift * BUCKETS_PER_POWER + 1) << shift) / 1e3;
  }
  return 0;
}

/*
 * What the clock covers. The processor time of both sides is read at the same moments, in nanoseconds and
 * for all threads of the process, so a storm of 30 ms is as readable as a run of 30 s.
 */
static struct {
  clockid_t server_clock;
  bool has_server;
  u64 began_ns, server_began_ns, load_began_ns;
  u64 wall_ns, server_ns, load_ns;
} window;

static void watch_server(pid_t pid) {
  if (clock_getcpuclockid(pid, &window.server_clock) != 0) fail("no process %d to watch", (int)pid);
  window.has_server = true;
}

static void begin_window(void) {
  if (window.has_server) window.server_began_ns = read_clock_ns(window.server_clock);
  window.load_began_ns = read_clock_ns(CLOCK_PROCESS_CPUTIME_ID);
  window.began_ns = now_ns();
}

static void end_window(void) {
  window.wall_ns += now_ns() - window.began_ns;
  window.load_ns += read_clock_ns(CLOCK_PROCESS_CPUTIME_ID) - window.load_began_ns;
  if (window.has_server) window.server_ns += read_clock_ns(window.server_clock) - window.server_began_ns;
}

static double window_s(void) { return (double)window.wall_ns / 1e9; }

/* Opens the line of JSON; the modes add their own numbers and close it. */
static void print_window(const char *mode) {
  printf("{\"mode\":\"%s\",\"seconds\":%.6f", mode, window_s());
  printf(",\"loadCpu\":%.3f", (double)window.load_ns / (double)window.wall_ns);
  if (window.has_server) printf(",\"serverCpu\":%.3f", (double)window.server_ns / (double)window.wall_ns);
}

/* A line that may arrive in pieces. */
struct line {
  uint32_t length;
  char text[LINE_BYTES];
};

/* Takes bytes up to a line feed. Returns the line without its break once it is whole, NULL until then. */
static const char *take_line(struct line *line, const char **bytes, size_t *count) {
  const char *feed = memchr(*bytes, '\n', *count);
  size_t length = feed ? (size_t)(feed - *bytes) : *count;
  if (line->length + length >= LINE_BYTES) fail("the server sent a line of %d bytes or more", LINE_BYTES);
  memcpy(line->text + line->length, *bytes, length);
  line->length += (uint32_t)length;
  *bytes += length + (feed != NULL);
  *count -= length + (feed != NULL);
  if (!feed) return NULL;

  if (line->length > 0 && line->text[line->length - 1] == '\r') line->length--;
  line->text[line->length] = '\0';
  line->length = 0;
  return line->text;
}

/* The rest of `text` if it starts with `name` in any case ("content-length:"), without the blanks between. */
static const char *field_value(const char *text, const char *name) {
  size_t length = strlen(name);
  return strncasecmp(text, name, length) == 0 ? text + length + strspn(text + length, " ") : NULL;
}

struct cursor {
  char epoch[EPOCH_BYTES + 1];
  u64 seq;
};

/* Contract 1: "<epoch>.<seq>". */
static bool parse_cursor(const char *text, struct cursor *cursor) {
  size_t length = strcspn(text, ".");
  if (length == 0 || length > EPOCH_BYTES || text[length] == '\0') return false;
  if (!isdigit((unsigned char)text[length + 1])) return false;
  memcpy(cursor->epoch, text, length);
  cursor->epoch[length] = '\0';
  cursor->seq = strtoull(text + length + 1, NULL, 10);
  return true;
}

struct request {
  char *bytes;
  size_t length;
};

struct stream {
  struct cursor start; /* where its subscribers must start; the first one decides if no epoch is set */
  struct cursor acked;
  struct request subscribe, publish;
};

enum role { SUBSCRIBER, SLOW, PUBLISHER, READER, PEER_SUBSCRIBER, ASKER };
enum phase { HEAD, PRIMING, EVENTS, ANSWER_BODY };

struct connection {
  enum role role;
  enum phase phase;
  struct stream *stream; /* of a publisher: the one that it publishes to now */
  int fd;
  int index;
  const struct request *request;
  size_t sent;
  size_t body_left; /* of the chunk, or of the answer */

  /* Subscriber. `frame` is the one that must come next; `matched` bytes of it have come. */
  char *frame;
  uint32_t frame_length;
  uint32_t id_length;
  uint32_t matched;
  bool in_comment;
  bool chunked;
  u64 seq; /* of the last whole frame */
  struct cursor start;

  /* Publisher. */
  u64 due_ns; /* when the request went out, or in an open loop should have gone out */
  u64 asked_after_seq;
  struct cursor answer;

  /* Of a peer. */
  u64 published;       /* by this publisher */
  struct request own;  /* what it sends: each is another */
  u64 *received;       /* by this subscriber, of each publisher */
  u64 received_in_all;
  long answer_lines;   /* of an asker, that have come */

  struct line http;   /* of the head, or a chunk's size */
  struct line text; /* before the first event; apart from `http`, for a chunk may end within such a line */
};

static struct {
  int epoll;
  char receive_buffer[RECEIVE_BYTES];
  u64 received_bytes;
  char *frame_tail;
  size_t frame_tail_length;

  struct stream *streams;
  struct connection *subscribers;
  struct connection *slow;
  struct connection *publishers;
  long primed, ended;
  long caught_up; /* subscribers[0..caught_up) have all that was acknowledged */
  u64 slow_read_ns;

  long asking; /* publishers whose answer is outstanding */
  u64 publishes, publishes_max, publish_until_ns;
} load;

struct delivery {
  u64 seq, at_ns;
};

/*
 * An open loop publishes when it is time to, whether or not the server keeps up. What is late is counted from
 * when it was due, so that a stall is seen in every event that it held up. Which event was due when is known
 * from the answers; deliveries that come before theirs are kept until the end.
 */
static struct {
  u64 events; /* 0: no open loop */
  u64 *due_ns; /* of the events after the stream's start, in the order of their seqs */
  struct delivery *deliveries;
  u64 delivery_count;
  u64 received_ns; /* of what is being read */
  struct connection **idle; /* publishers that wait for the next event to be due */
  long idle_count;
} open_loop;

/*
 * Peers have ids of their own kind, or none, so what they deliver is verified by its data: publisher, number and
 * when it was due, then padding. Of each publisher a subscriber must get 0, 1, 2 and so on.
 */
#define PEER_DATA "%04d %010llu %020llu "
enum { PEER_DATA_BYTES = 4 + 1 + 10 + 1 + 20 + 1 };

static bool is_peer(void) { return options.publish_path != NULL; }

static void write_peer_data(struct connection *c) {
  char data[PEER_DATA_BYTES + 1];
  snprintf(data, sizeof data, PEER_DATA, c->index, c->published++, c->due_ns);
  memcpy(c->own.bytes + c->own.length - (size_t)options.event_bytes, data, PEER_DATA_BYTES);
}

static void take_peer_line(struct connection *c, const char *text) {
  const char *data = field_value(text, "data:");
  int publisher;
  u64 number, due_ns;
  if (!data) return;
  if (sscanf(data, "%d %llu %llu", &publisher, &number, &due_ns) != 3 || publisher >= options.publishers ||
      strlen(data) != (size_t)options.event_bytes) {
    fail("subscriber %d: foreign data: \"%s\"", c->index, text);
  }
  if (number != c->received[publisher]) {
    fail("subscriber %d: %s: expected %llu of publisher %d, got %llu", c->index,
         number > c->received[publisher] ? "gap" : "duplicate", c->received[publisher], publisher, number);
  }
  c->received[publisher]++;
  c->received_in_all++;
  record_latency(&delivery_latencies, open_loop.received_ns - due_ns);
}

/* Contract 4.3: the frame after `seq`, as the broker must send it. */
static void write_frame(struct connection *c) {
  char id[ID_LINE_BYTES];
  int length = snprintf(id, sizeof id, "id: %s.%llu\n", c->stream->start.epoch, c->seq + 1);
  c->id_length = (uint32_t)length;
  c->frame_length = c->id_length + (uint32_t)load.frame_tail_length;
  memcpy(mempcpy(c->frame, id, c->id_length), load.frame_tail, load.frame_tail_length);
}

static void note_delivery(u64 seq) {
  if (open_loop.delivery_count == open_loop.events * (u64)options.subscribers) fail("seq %llu is one too many", seq);
  open_loop.deliveries[open_loop.delivery_count++] = (struct delivery){seq, open_loop.received_ns};
}

/* The frame that had to come has come: counts the id up where it stands. */
static void expect_next(struct connection *c) {
  c->matched = 0;
  c->seq++;
  if (open_loop.events > 0) note_delivery(c->seq);
  char *digit = c->frame + c->id_length - 2;
  while (*digit == '9') *digit-- = '0';
  if (*digit == '.') {
    write_frame(c); /* 99 becomes 100, a longer line */
  } else {
    ++*digit;
  }
}

/* Something else came than the frame that had to: says which id, if enough of it is here to be read. */
__attribute__((noreturn))
static void fail_frame(const struct connection *c, const char *bytes, size_t count) {
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
    fail("subscriber %d: %s: expected %s.%llu, got %s.%llu", c->index, fault, c->stream->start.epoch,
         expected, got.epoch, got.seq);
  }
  fail("subscriber %d: byte %u of the frame of %s.%llu is wrong: \"%.*s\"", c->index, c->matched,
       c->stream->start.epoch, expected, (int)smaller(count, 80), bytes);
}

/* Hot: a few nanoseconds a frame. */
static void match_events(struct connection *c, const char *bytes, size_t count) {
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

/* Contract 4.2: the priming frame names the position, so it decides which event must be the first. */
static void start_events(struct connection *c) {
  struct cursor *start = &c->stream->start;
  if (start->epoch[0] == '\0') *start = c->start;
  if (strcmp(c->start.epoch, start->epoch) != 0 || c->start.seq != start->seq) {
    fail("subscriber %d: starts at %s.%llu, expected %s.%llu", c->index, c->start.epoch, c->start.seq,
         start->epoch, start->seq);
  }
  c->seq = c->start.seq;
  c->frame = allocate(ID_LINE_BYTES + load.frame_tail_length, 1);
  write_frame(c);
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
  if (c->role == PEER_SUBSCRIBER) {
    for (const char *text; (text = take_line(&c->text, &bytes, &count));) take_peer_line(c, text);
    return;
  }
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

static void take_subscriber_bytes(struct connection *c, const char *bytes, size_t count) {
  while (count > 0 && c->phase == HEAD) {
    const char *text = take_line(&c->http, &bytes, &count);
    if (!text) return;
    if (field_value(text, "HTTP/") && !field_value(text, "HTTP/1.1 200 ")) {
      fail("subscriber %d: %s\n%.*s", c->index, text, (int)count, bytes);
    }
    if (field_value(text, "transfer-encoding: chunked")) c->chunked = true;
    if (*text != '\0') continue;
    if (!c->chunked && c->role != PEER_SUBSCRIBER) fail("subscriber %d: the answer is not chunked", c->index);
    if (c->role == PEER_SUBSCRIBER) load.primed++;
    c->phase = PRIMING;
  }
  if (!c->chunked) {
    take_stream(c, bytes, count); /* a peer's, which ends with its connection */
    return;
  }
  while (count > 0) {
    if (c->body_left == 0) {
      const char *text = take_line(&c->http, &bytes, &count); /* blank: the break after a chunk's data */
      if (text && *text != '\0') c->body_left = chunk_size(c, text);
      continue;
    }
    size_t length = smaller(count, c->body_left);
    take_stream(c, bytes, length);
    c->body_left -= length;
    bytes += length;
    count -= length;
  }
}

static void send_request(struct connection *c) {
  while (c->request && c->sent < c->request->length) {
    ssize_t sent = send(c->fd, c->request->bytes + c->sent, c->request->length - c->sent, MSG_NOSIGNAL);
    if (sent < 0 && errno == EAGAIN) return;
    if (sent < 0) fail("cannot send: %s", strerror(errno));
    c->sent += (size_t)sent;
  }
}

static void publish(struct connection *c, u64 due_ns) {
  c->stream = &load.streams[load.publishes++ % (u64)options.streams];
  load.asking++;
  c->asked_after_seq = c->stream->acked.seq;
  c->due_ns = due_ns;
  c->request = c->own.bytes ? &c->own : &c->stream->publish;
  if (is_peer()) write_peer_data(c);
  c->sent = 0;
  send_request(c);
}

static void note_publish(struct connection *c) {
  u64 index = c->answer.seq - c->stream->start.seq - 1;
  if (index >= open_loop.events) fail("publisher %d: acknowledged seq %llu", c->index, c->answer.seq);
  open_loop.due_ns[index] = c->due_ns;
}

/* I6: what was acknowledged before this publish began has smaller seqs than all of its events. */
static void check_acknowledgement(struct connection *c) {
  if (c->answer.epoch[0] == '\0') fail("publisher %d: the answer has no Gapless-Cursor", c->index);
  if (c->answer.seq < c->asked_after_seq + (u64)options.batch) {
    fail("publisher %d: acknowledged up to seq %llu after %llu was", c->index, c->answer.seq,
         c->asked_after_seq);
  }
  struct cursor *acked = &c->stream->acked;
  bool is_first = acked->epoch[0] == '\0';
  if (!is_first && strcmp(c->answer.epoch, acked->epoch) != 0) fail("the stream's epoch has changed");
  if (c->answer.seq > acked->seq) *acked = c->answer;
  if (open_loop.events > 0) note_publish(c);
}

static void take_answer(struct connection *c) {
  u64 now = now_ns();
  record_latency(&publish_latencies, now - c->due_ns);
  load.asking--;
  if (c->own.bytes == NULL) check_acknowledgement(c);
  if (open_loop.events > 0) open_loop.idle[open_loop.idle_count++] = c;
  c->answer.epoch[0] = '\0';
  c->phase = HEAD;
  if (now < load.publish_until_ns && load.publishes < load.publishes_max) publish(c, now);
}

static void take_answer_head(struct connection *c, const char *text, const char *rest, size_t rest_length) {
  const char *value;
  if (*text == '\0') {
    c->phase = ANSWER_BODY;
  } else if ((value = field_value(text, "content-length:"))) {
    c->body_left = strtoul(value, NULL, 10);
  } else if ((value = field_value(text, "gapless-cursor:"))) {
    if (!parse_cursor(value, &c->answer)) fail("publisher %d: unreadable: \"%s\"", c->index, text);
  } else if (field_value(text, "HTTP/") && !field_value(text, "HTTP/1.1 20")) {
    fail("publisher %d: %s\n%.*s", c->index, text, (int)rest_length, rest);
  }
}

static void take_publisher_bytes(struct connection *c, const char *bytes, size_t count) {
  for (;;) {
    if (c->phase == ANSWER_BODY) {
      size_t length = smaller(count, c->body_left);
      c->body_left -= length;
      bytes += length;
      count -= length;
      if (c->body_left > 0) return;
      take_answer(c);
    }
    const char *text = take_line(&c->http, &bytes, &count);
    if (!text) return;
    take_answer_head(c, text, bytes, count);
  }
}

/* The answer to a request of `ask` is so many lines, the first with a prefix. */
static void take_asker_bytes(struct connection *c, const char *bytes, size_t count) {
  for (const char *text; (text = take_line(&c->http, &bytes, &count));) {
    if (c->request == NULL || c->sent < c->request->length || load.asking == 0) continue; /* a greeting */
    if (c->answer_lines == 0 && strncmp(text, options.answer_prefix, strlen(options.answer_prefix)) != 0) {
      if (strcmp(text, "+OK") == 0 || strcmp(text, "PING") == 0) continue;
      fail("asker %d: unexpected answer: \"%s\"", c->index, text);
    }
    if (strstr(text, "\"error\"")) fail("asker %d: refused: %s", c->index, text);
    if (++c->answer_lines < options.answer_lines) continue;
    c->answer_lines = 0;
    take_answer(c);
  }
}

static void take_bytes(struct connection *c, const char *bytes, size_t count) {
  switch (c->role) {
    case SUBSCRIBER:
    case SLOW: take_subscriber_bytes(c, bytes, count); break;
    case PUBLISHER: take_publisher_bytes(c, bytes, count); break;
    case PEER_SUBSCRIBER: take_subscriber_bytes(c, bytes, count); break;
    case ASKER: take_asker_bytes(c, bytes, count); break;
    case READER: break;
  }
}

/* Edge-triggered: a read that does not fill the buffer has emptied the socket, but for its end. */
static void receive(struct connection *c, bool at_end) {
  ssize_t count;
  do {
    count = recv(c->fd, load.receive_buffer, RECEIVE_BYTES, 0);
    if (count < 0 && errno == EAGAIN) return;
    if (count < 0) fail("connection %d to 127.0.0.1:%ld: %s", c->index, options.port, strerror(errno));
    load.received_bytes += (u64)count;
    if (open_loop.events > 0 || c->role == PEER_SUBSCRIBER) open_loop.received_ns = now_ns();
    take_bytes(c, load.receive_buffer, (size_t)count);
  } while (count == RECEIVE_BYTES || (at_end && count > 0));
  if (!at_end) return;
  if (c->role != READER) fail("the server closed connection %d", c->index);
  load.ended++;
  epoll_ctl(load.epoll, EPOLL_CTL_DEL, c->fd, NULL);
}

/* A little at a time, whether more is there or not. */
static void read_slowly(void) {
  u64 now = now_ns();
  if (now < load.slow_read_ns + (u64)SLOW_MS * 1000000u) return;
  load.slow_read_ns = now;
  for (long i = 0; i < options.slow; i++) {
    struct connection *c = &load.slow[i];
    ssize_t count = recv(c->fd, load.receive_buffer, SLOW_BYTES, 0);
    if (count < 0 && errno == EAGAIN) continue;
    if (count <= 0) fail("slow subscriber %d: the connection ended", c->index);
    take_bytes(c, load.receive_buffer, (size_t)count);
  }
}

static void turn(int timeout_ms) {
  static struct epoll_event events[TURN_EVENTS];
  int count = epoll_wait(load.epoll, events, TURN_EVENTS, timeout_ms);
  if (count < 0 && errno != EINTR) fail("epoll: %s", strerror(errno));
  for (int i = 0; i < count; i++) {
    struct connection *c = events[i].data.ptr;
    uint32_t ready = events[i].events;
    if (ready & EPOLLOUT) send_request(c);
    if (c->role == SLOW) continue;
    if (ready & ~(uint32_t)EPOLLOUT) receive(c, ready & (EPOLLRDHUP | EPOLLHUP | EPOLLERR));
  }
  if (load.slow) read_slowly();
}

/* `expected_ms` is what it may rightly take until `done`; what stalls for longer than that ends the run. */
static void turn_until(bool (*done)(void), long expected_ms, const char *what) {
  u64 deadline_ns = after_ms(expected_ms + STALL_MS);
  while (!done()) {
    turn(TURN_MS);
    if (now_ns() > deadline_ns) fail("%s: not within %ld ms", what, expected_ms + STALL_MS);
  }
}

/* Lets everything in flight arrive, off the clock: also an event that is one too many. */
static void settle(void) {
  for (u64 end_ns = after_ms(SETTLE_MS); now_ns() < end_ns;) turn(SETTLE_MS / 10);
}

static struct sockaddr_in loopback(uint32_t host, long port) {
  return (struct sockaddr_in){
      .sin_family = AF_INET, .sin_addr.s_addr = htonl(host), .sin_port = htons((uint16_t)port)};
}

static void set_option(int fd, int level, int name, const void *value, socklen_t length) {
  if (setsockopt(fd, level, name, value, length) != 0) fail("setsockopt: %s", strerror(errno));
}

/*
 * A subscriber's request is sent as soon as the connection stands: on loopback, at once. That a connection is
 * refused shows at its first event.
 */
static void open_connection(struct connection *c, enum role role, int index, struct stream *stream) {
  const int on = 1;
  *c = (struct connection){.role = role, .index = index, .stream = stream};
  if (role == SUBSCRIBER || role == SLOW || role == PEER_SUBSCRIBER) c->request = &stream->subscribe;
  c->fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
  if (c->fd < 0) fail("cannot open socket %d: %s", index, strerror(errno));
  if (role == SLOW) {
    const int bytes = SLOW_BYTES; /* or the kernel would hold what it has not read */
    set_option(c->fd, SOL_SOCKET, SO_RCVBUF, &bytes, sizeof bytes);
  }
  if (index >= PORTS_PER_ADDRESS) {
    struct sockaddr_in source = loopback(INADDR_LOOPBACK + (uint32_t)(index / PORTS_PER_ADDRESS), 0);
    set_option(c->fd, IPPROTO_IP, IP_BIND_ADDRESS_NO_PORT, &on, sizeof on);
    if (bind(c->fd, (struct sockaddr *)&source, sizeof source) != 0) fail("cannot bind: %s", strerror(errno));
  }
  struct sockaddr_in server = loopback(INADDR_LOOPBACK, options.port);
  if (connect(c->fd, (struct sockaddr *)&server, sizeof server) != 0 && errno != EINPROGRESS) {
    fail("connection %d to 127.0.0.1:%ld: %s", index, options.port, strerror(errno));
  }
  struct epoll_event event = {.events = EPOLLIN | EPOLLOUT | EPOLLRDHUP | EPOLLET, .data.ptr = c};
  if (epoll_ctl(load.epoll, EPOLL_CTL_ADD, c->fd, &event) != 0) fail("epoll: %s", strerror(errno));
  send_request(c);
}

/* By a reset, which leaves no TIME_WAIT: runs in a row would be short of ports. */
static void close_connections(struct connection *connections, long count) {
  const struct linger reset = {.l_onoff = 1};
  for (long i = 0; i < count; i++) {
    set_option(connections[i].fd, SOL_SOCKET, SO_LINGER, &reset, sizeof reset);
    close(connections[i].fd);
    free(connections[i].frame);
  }
}

static bool has_all(const struct connection *c) {
  return is_peer() ? c->received_in_all >= load.publishes : c->seq >= c->stream->acked.seq;
}
static bool all_slow_primed(void) { return load.primed == options.subscribers + options.slow; }
static bool all_subscribers_primed(void) { return load.primed == options.subscribers; }
static bool all_answered(void) { return load.asking == 0; }
static bool all_readers_ended(void) { return load.ended == options.subscribers; }

static bool all_caught_up(void) {
  while (load.caught_up < options.subscribers && has_all(&load.subscribers[load.caught_up])) load.caught_up++;
  return load.caught_up == options.subscribers;
}

static struct stream *stream_of(int subscriber) { return &load.streams[subscriber % options.streams]; }

/* Names in a row, where there are several: NAME-0, NAME-1 and so on. */
static void name_stream(char *name, long index) {
  if (options.streams == 1) snprintf(name, LINE_BYTES, "%s", options.stream);
  else snprintf(name, LINE_BYTES, "%s-%ld", options.stream, index);
}

/* `cursor` is a line of the head that gives the position, or empty. */
static void prepare_subscribe(const char *query, const char *cursor) {
  for (long i = 0; i < options.streams; i++) {
    char name[LINE_BYTES];
    name_stream(name, i);
    struct request *request = &load.streams[i].subscribe;
    int length = asprintf(&request->bytes,
                          "GET /v1/streams/%s%s HTTP/1.1\r\nHost: 127.0.0.1:%ld\r\n"
                          "Accept: text/event-stream\r\n%s\r\n",
                          name, query, options.port, cursor);
    if (length < 0) fail("no memory");
    request->length = (size_t)length;
  }
}

static void fill_payload(char *bytes) {
  static const char text[] = "{\"delta\":\"the quick brown fox jumps over the lazy dog\"} ";
  for (long i = 0; i < options.event_bytes; i++) bytes[i] = text[(size_t)i % (sizeof text - 1)];
}

/* Contract 4.3: what every frame of the run holds after its id line. */
static void prepare_frame_tail(void) {
  static const char name[] = "data: ";
  size_t length = sizeof name - 1 + (size_t)options.event_bytes + 2;
  char *tail = allocate(length, 1);
  memcpy(tail, name, sizeof name - 1);
  fill_payload(tail + sizeof name - 1);
  memcpy(tail + length - 2, "\n\n", 2);
  load.frame_tail = tail;
  load.frame_tail_length = length;
}

static size_t put_msgpack(char *body) {
  static const char entry[] = "\x81\xa4" "data\xda"; /* a map of one, the key, and a str 16 */
  size_t at = 0;
  body[at++] = '\xdc'; /* array 16 */
  body[at++] = (char)(options.batch >> 8);
  body[at++] = (char)options.batch;
  for (long i = 0; i < options.batch; i++) {
    memcpy(body + at, entry, sizeof entry - 1);
    at += sizeof entry - 1;
    body[at++] = (char)(options.event_bytes >> 8);
    body[at++] = (char)options.event_bytes;
    fill_payload(body + at);
    at += (size_t)options.event_bytes;
  }
  return at;
}

static size_t put_lines(char *body) {
  size_t line = (size_t)options.event_bytes + (options.batch > 1);
  for (long i = 0; i < options.batch; i++) {
    char *event = body + line * (size_t)i;
    fill_payload(event);
    if (options.batch > 1) event[line - 1] = '\n';
  }
  return line * (size_t)options.batch;
}

/* One event as text, or a batch of them as NDJSON or MessagePack (contract 3.1). */
static void prepare_publish(void) {
  const char *type = options.msgpack     ? "application/msgpack"
                     : options.batch > 1 ? "application/x-ndjson"
                                         : "text/plain";
  char *body = allocate((size_t)options.batch, (size_t)options.event_bytes + 16);
  size_t body_length = options.msgpack ? put_msgpack(body) : put_lines(body);
  for (long i = 0; i < options.streams; i++) {
    char name[LINE_BYTES], *head;
    name_stream(name, i);
    int length = asprintf(&head,
                          "POST /v1/streams/%s HTTP/1.1\r\nHost: 127.0.0.1:%ld\r\nContent-Type: %s\r\n"
                          "Content-Length: %zu\r\n\r\n",
                          name, options.port, type, body_length);
    if (length < 0) fail("no memory");
    struct request *request = &load.streams[i].publish;
    request->length = (size_t)length + body_length;
    request->bytes = allocate(request->length, 1);
    memcpy(mempcpy(request->bytes, head, (size_t)length), body, body_length);
    free(head);
  }
  free(body);
}

static void open_publishers(void) {
  prepare_publish();
  load.publishers = allocate((size_t)options.publishers, sizeof *load.publishers);
  for (int i = 0; i < options.publishers; i++) {
    const int on = 1; /* the end of a large batch must not wait for the acknowledgement of its beginning */
    open_connection(&load.publishers[i], PUBLISHER, i, NULL);
    set_option(load.publishers[i].fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
  }
}

/* In a closed loop until the time is over or the count is reached, and until the last answer is there. */
static void publish_all(long duration_ms, u64 publishes_max) {
  load.publishes_max = publishes_max;
  load.publish_until_ns = after_ms(duration_ms);
  for (long i = 0; i < options.publishers && load.publishes < publishes_max; i++) {
    publish(&load.publishers[i], now_ns());
  }
  turn_until(all_answered, duration_ms, "waiting for the publishers' answers");
}

static u64 published_events(void) { return load.publishes * (u64)options.batch; }

static void open_subscribers_gently(void) {
  prepare_subscribe("?cursor=latest", "");
  load.subscribers = allocate((size_t)options.subscribers, sizeof *load.subscribers);
  for (int i = 0; i < options.subscribers; i++) {
    u64 deadline_ns = after_ms(STALL_MS);
    while (i - load.primed >= UNPRIMED_MAX) {
      turn(TURN_MS);
      if (now_ns() > deadline_ns) fail("subscribing: stuck at %ld of %d", load.primed, i);
    }
    open_connection(&load.subscribers[i], SUBSCRIBER, i, stream_of(i));
  }
  turn_until(all_subscribers_primed, 0, "subscribing");
  if (options.slow == 0) return;
  load.slow = allocate((size_t)options.slow, sizeof *load.slow);
  for (int i = 0; i < options.slow; i++) open_connection(&load.slow[i], SLOW, i, stream_of(i));
  turn_until(all_slow_primed, 0, "subscribing slowly");
}

static void print_publishing(void) {
  printf(",\"publishers\":%ld,\"batch\":%ld", options.publishers, options.batch);
  printf(",\"eventBytes\":%ld", options.event_bytes);
  printf(",\"publishes\":%llu", load.publishes);
  printf(",\"publishesPerSecond\":%.1f", (double)load.publishes / window_s());
  printf(",\"publishLatencyP50Us\":%.1f,\"publishLatencyP99Us\":%.1f", latency_us(&publish_latencies, 50),
         latency_us(&publish_latencies, 99));
}

static void print_deliveries(u64 deliveries) {
  printf(",\"subscribers\":%ld,\"deliveries\":%llu", options.subscribers, deliveries);
  printf(",\"deliveriesPerSecond\":%.1f", (double)deliveries / window_s());
  printf(",\"megabytesPerSecond\":%.3f", (double)load.received_bytes / 1e6 / window_s());
}

/* Waits for something to read, but no longer than until `until_ns`; epoll_wait(2) knows milliseconds only. */
static void turn_before(u64 until_ns) {
  u64 now = now_ns();
  if (until_ns > now) {
    struct pollfd wait = {.fd = load.epoll, .events = POLLIN};
    u64 left_ns = until_ns - now;
    struct timespec timeout = {(time_t)(left_ns / 1000000000u), (long)(left_ns % 1000000000u)};
    if (ppoll(&wait, 1, &timeout, NULL) < 0 && errno != EINTR) fail("poll: %s", strerror(errno));
  }
  turn(0);
}

/* Publishes `open_loop.events`, each when it is due, or as soon after as a publisher is free. */
static void publish_on_time(void) {
  u64 began_ns = now_ns(), interval_ns = 1000000000u / (u64)options.rate;
  u64 deadline_ns = began_ns + interval_ns * open_loop.events + (u64)STALL_MS * 1000000u;
  load.publishes_max = 0; /* an answer does not ask for the next */
  for (u64 next = 0; next < open_loop.events || load.asking > 0;) {
    u64 now = now_ns(), due_ns = began_ns + interval_ns * next;
    bool is_left = next < open_loop.events;
    if (now > deadline_ns) fail("publishing at a rate: %ld answers are missing", load.asking);
    if (is_left && due_ns <= now && open_loop.idle_count > 0) {
      publish(open_loop.idle[--open_loop.idle_count], due_ns);
      next++;
    } else {
      turn_before(is_left && due_ns > now ? due_ns : now + (u64)TURN_MS * 1000000u);
    }
  }
}

static void run_publish(void) {
  open_publishers();
  begin_window();
  publish_all(options.duration_ms, UINT64_MAX);
  end_window();
  close_connections(load.publishers, options.publishers);
  print_window("publish");
  print_publishing();
  printf(",\"eventsPerSecond\":%.1f}\n", (double)published_events() / window_s());
}

static void check_deliveries(u64 deliveries) {
  u64 expected = 0;
  for (int i = 0; i < options.subscribers; i++) expected += stream_of(i)->acked.seq - stream_of(i)->start.seq;
  if (deliveries == expected) return;
  fail("%llu deliveries instead of %llu, of %llu events", deliveries, expected, published_events());
}

static void run_fanout(void) {
  open_subscribers_gently();
  open_publishers();
  load.received_bytes = 0;

  begin_window();
  publish_all(options.duration_ms, UINT64_MAX);
  turn_until(all_caught_up, 0, "waiting for the last deliveries");
  end_window();
  settle();

  u64 deliveries = 0;
  for (long i = 0; i < options.subscribers; i++) deliveries += load.subscribers[i].seq - stream_of((int)i)->start.seq;
  check_deliveries(deliveries);
  close_connections(load.subscribers, options.subscribers);
  close_connections(load.slow, options.slow);
  close_connections(load.publishers, options.publishers);
  print_window("fanout");
  print_publishing();
  print_deliveries(deliveries);
  puts("}");
}

static void begin_open_loop(void) {
  open_loop.events = (u64)options.rate * (u64)options.duration_ms / 1000;
  if (open_loop.events == 0) fail("nothing is due within %ld ms", options.duration_ms);
  open_loop.due_ns = allocate(open_loop.events, sizeof *open_loop.due_ns);
  open_loop.deliveries = allocate(open_loop.events * (u64)options.subscribers, sizeof *open_loop.deliveries);
  open_loop.idle = allocate((size_t)options.publishers, sizeof *open_loop.idle);
  for (long i = 0; i < options.publishers; i++) open_loop.idle[open_loop.idle_count++] = &load.publishers[i];
}

/* How long after it was due an event reaches a subscriber. */
static void run_latency(void) {
  prctl(PR_SET_TIMERSLACK, 1, 0, 0, 0);
  open_subscribers_gently();
  open_publishers();
  begin_open_loop();
  load.received_bytes = 0;

  begin_window();
  publish_on_time();
  turn_until(all_caught_up, 0, "waiting for the last deliveries");
  end_window();
  settle();

  check_deliveries(open_loop.delivery_count);
  for (u64 i = 0; i < open_loop.delivery_count; i++) {
    const struct delivery *delivery = &open_loop.deliveries[i];
    record_latency(&delivery_latencies, delivery->at_ns - open_loop.due_ns[delivery->seq - load.streams[0].start.seq - 1]);
  }
  close_connections(load.subscribers, options.subscribers);
  close_connections(load.publishers, options.publishers);
  print_window("latency");
  print_publishing();
  print_deliveries(open_loop.delivery_count);
  printf(",\"deliveryP50Us\":%.1f,\"deliveryP99Us\":%.1f,\"deliveryMaxUs\":%.1f}\n",
         latency_us(&delivery_latencies, 50), latency_us(&delivery_latencies, 99),
         latency_us(&delivery_latencies, 100));
}

static void prepare_peer(void) {
  struct request *request = &load.streams->subscribe;
  int length = asprintf(&request->bytes,
                        "GET %s HTTP/1.1\r\nHost: 127.0.0.1:%ld\r\nAccept: text/event-stream\r\n\r\n",
                        options.subscribe_path, options.port);
  if (length < 0) fail("no memory");
  request->length = (size_t)length;
}

static void open_peer_publisher(struct connection *c, int index) {
  open_connection(c, PUBLISHER, index, NULL);
  char *head;
  int length = asprintf(&head,
                        "POST %s HTTP/1.1\r\nHost: 127.0.0.1:%ld\r\nContent-Type: text/plain\r\n"
                        "Content-Length: %ld\r\n\r\n",
                        options.publish_path, options.port, options.event_bytes);
  if (length < 0) fail("no memory");
  c->own.length = (size_t)length + (size_t)options.event_bytes;
  c->own.bytes = allocate(c->own.length, 1);
  memcpy(c->own.bytes, head, (size_t)length);
  fill_payload(c->own.bytes + length);
  free(head);
}

/* A fan-out of any server that publishes by POST and delivers by SSE, in a closed loop, or with --rate an open one. */
static void run_peer(void) {
  const int on = 1;
  if (!is_peer() || !options.subscribe_path) fail("needed: --publish-path and --subscribe-path");
  if (options.event_bytes < PEER_DATA_BYTES) fail("--event-bytes: at least %d", PEER_DATA_BYTES);
  prctl(PR_SET_TIMERSLACK, 1, 0, 0, 0);
  prepare_peer();
  load.subscribers = allocate((size_t)options.subscribers, sizeof *load.subscribers);
  for (int i = 0; i < options.subscribers; i++) {
    struct connection *c = &load.subscribers[i];
    while (i - load.primed >= UNPRIMED_MAX) turn(TURN_MS);
    open_connection(c, PEER_SUBSCRIBER, i, load.streams);
    c->received = allocate((size_t)options.publishers, sizeof *c->received);
  }
  turn_until(all_subscribers_primed, 0, "subscribing");
  load.publishers = allocate((size_t)options.publishers, sizeof *load.publishers);
  for (int i = 0; i < options.publishers; i++) {
    open_peer_publisher(&load.publishers[i], i);
    set_option(load.publishers[i].fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
  }
  settle(); /* not every server that has sent the head delivers by then */
  load.received_bytes = 0;
  if (options.rate > 0) begin_open_loop();

  begin_window();
  if (options.rate > 0) publish_on_time();
  else publish_all(options.duration_ms, UINT64_MAX);
  turn_until(all_caught_up, 0, "waiting for the last deliveries");
  end_window();
  settle();

  u64 deliveries = 0;
  for (long i = 0; i < options.subscribers; i++) deliveries += load.subscribers[i].received_in_all;
  if (deliveries != load.publishes * (u64)options.subscribers) fail("%llu deliveries are too many", deliveries);
  close_connections(load.subscribers, options.subscribers);
  close_connections(load.publishers, options.publishers);
  print_window("peer");
  print_publishing();
  print_deliveries(deliveries);
  printf(",\"deliveryP50Us\":%.1f,\"deliveryP99Us\":%.1f}\n", latency_us(&delivery_latencies, 50),
         latency_us(&delivery_latencies, 99));
}

/* "@@@@" in it becomes the number of the connection. */
static struct request request_of(const char *template, int index) {
  struct request request = {.length = strlen(template), .bytes = strdup(template)};
  char number[16];
  snprintf(number, sizeof number, "%04d", index);
  for (char *at = request.bytes; (at = strstr(at, "@@@@"));) memcpy(at, number, 4);
  return request;
}

/* Publishers of any protocol with an answer of lines to each request, in a closed loop. */
static void run_ask(void) {
  const int on = 1;
  if (!options.request || !options.answer_prefix) fail("needed: --request and --answer-prefix");
  load.publishers = allocate((size_t)options.publishers, sizeof *load.publishers);
  for (int i = 0; i < options.publishers; i++) {
    struct connection *c = &load.publishers[i];
    open_connection(c, ASKER, i, NULL);
    set_option(c->fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    if (options.preface) {
      struct request preface = request_of(options.preface, i);
      c->request = &preface;
      settle();
      send_request(c);
      c->request = NULL;
    }
    c->own = request_of(options.request, i);
  }
  settle();
  begin_window();
  publish_all(options.duration_ms, UINT64_MAX);
  end_window();
  close_connections(load.publishers, options.publishers);
  print_window("ask");
  print_publishing();
  puts("}");
}

/* The clock runs from the first connect to the last byte. */
static void storm_once(void) {
  load.caught_up = 0;
  begin_window();
  for (int i = 0; i < options.subscribers; i++) open_connection(&load.subscribers[i], SUBSCRIBER, i, stream_of(i));
  turn_until(all_caught_up, 0, "catching up");
  end_window();
}

/* Publishes what a storm is behind. */
static void prepare_storm(void) {
  struct stream *stream = load.streams;
  open_publishers();
  publish_all(STALL_MS, (u64)(options.events / options.batch));
  close_connections(load.publishers, options.publishers); /* nothing more to say, and the server ends silent ones */
  stream->start = stream->acked;
  stream->start.seq -= published_events();
  load.subscribers = allocate((size_t)options.subscribers, sizeof *load.subscribers);
  load.received_bytes = 0;

  char header[LINE_BYTES];
  snprintf(header, sizeof header, "Last-Event-ID: %s.%llu\r\n", stream->start.epoch, stream->start.seq);
  prepare_subscribe("", header);
}

static void print_storms(const char *mode, long times, u64 deliveries) {
  print_window(mode);
  printf(",\"times\":%ld,\"events\":%llu", times, published_events());
  print_deliveries(deliveries);
  puts("}");
}

static void run_storm(void) {
  prepare_storm();
  for (long i = 0; i < options.times; i++) {
    storm_once();
    settle();
    close_connections(load.subscribers, options.subscribers);
    settle(); /* so that the server's part of the closing is over when the next clock starts */
  }
  print_storms("storm", options.times, published_events() * (u64)options.subscribers * (u64)options.times);
}

static bool has_input(void) {
  struct pollfd input = {.fd = STDIN_FILENO, .events = POLLIN};
  return poll(&input, 1, 0) > 0;
}

/*
 * A storm without an end: the subscribers come within --spread-ms, and whoever has caught up breaks off and comes
 * back as far behind as at first. Goes on until there is something on stdin, or its end; says when it begins.
 */
static void run_surge(void) {
  prepare_storm();
  u64 interval_ns = (u64)options.spread_ms * 1000000u / (u64)options.subscribers, resumes = 0, deliveries = 0;
  long opened = 0;
  puts("{\"mode\":\"surge\",\"began\":1}");
  fflush(stdout);
  begin_window();
  while (!has_input()) {
    while (opened < options.subscribers && now_ns() >= window.began_ns + interval_ns * (u64)opened) {
      open_connection(&load.subscribers[opened], SUBSCRIBER, (int)opened, load.streams);
      opened++;
    }
    turn(opened < options.subscribers ? 1 : TURN_MS / 10);
    for (long i = 0; i < opened; i++) {
      struct connection *c = &load.subscribers[i];
      if (!has_all(c)) continue;
      deliveries += published_events();
      resumes++;
      close_connections(c, 1);
      open_connection(c, SUBSCRIBER, (int)i, load.streams);
    }
  }
  end_window();
  for (long i = 0; i < opened; i++) {
    u64 seq = load.subscribers[i].seq; /* 0 before the priming frame */
    if (seq > load.streams->start.seq) deliveries += seq - load.streams->start.seq;
  }
  close_connections(load.subscribers, opened);
  print_storms("surge", (long)resumes, deliveries);
}

/* Says when all are there, then holds (and verifies) them until stdin closes. */
static void run_idle(void) {
  begin_window();
  open_subscribers_gently();
  end_window();
  print_window("idle");
  printf(",\"subscribers\":%ld}\n", options.subscribers);
  fflush(stdout);

  struct pollfd waits[] = {{.fd = STDIN_FILENO, .events = POLLIN}, {.fd = load.epoll, .events = POLLIN}};
  for (;;) {
    if (poll(waits, 2, -1) < 0 && errno != EINTR) fail("poll: %s", strerror(errno));
    if (waits[1].revents) turn(0);
    if (waits[0].revents && read(STDIN_FILENO, load.receive_buffer, RECEIVE_BYTES) <= 0) break;
  }
  close_connections(load.subscribers, options.subscribers);
}

/* The bytes a broker would write for one event: a chunk that holds the frame. */
static struct request baseline_frame(void) {
  char id[ID_LINE_BYTES], size[16];
  int id_length = snprintf(id, sizeof id, "id: %s.%d\n", "k3v9x0q2ab", 1000000);
  int size_length = snprintf(size, sizeof size, "%zx\r\n", (size_t)id_length + load.frame_tail_length);
  struct request frame = {.length = (size_t)(size_length + id_length) + load.frame_tail_length + 2};
  frame.bytes = allocate(frame.length, 1);
  char *at = mempcpy(frame.bytes, size, (size_t)size_length);
  at = mempcpy(at, id, (size_t)id_length);
  at = mempcpy(at, load.frame_tail, load.frame_tail_length);
  memcpy(at, "\r\n", 2);
  return frame;
}

static void exchange(ssize_t moved, size_t expected) {
  if (moved != (ssize_t)expected) fail("the other process of the baseline is gone");
}

/* The process that stands for a server: send(2) in a plain loop over blocking sockets. */
__attribute__((noreturn)) static void send_rounds(int listener, int control, const struct request *frame) {
  const int on = 1;
  int *fds = allocate((size_t)options.subscribers, sizeof *fds);
  pin_to(options.sender_cpu);
  for (long i = 0; i < options.subscribers; i++) {
    fds[i] = accept4(listener, NULL, NULL, SOCK_CLOEXEC);
    if (fds[i] < 0) fail("accept: %s", strerror(errno));
    set_option(fds[i], IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
  }
  char go = 0;
  exchange(write(control, &go, 1), 1);
  exchange(read(control, &go, 1), 1);

  u64 sends = 0, until_ns = after_ms(options.duration_ms);
  do {
    for (long i = 0; i < options.subscribers; i++) {
      ssize_t sent = send(fds[i], frame->bytes, frame->length, MSG_NOSIGNAL);
      if (sent != (ssize_t)frame->length) fail("send: %s", strerror(errno));
    }
    sends += (u64)options.subscribers;
  } while (now_ns() < until_ns);
  for (long i = 0; i < options.subscribers; i++) shutdown(fds[i], SHUT_WR);

  exchange(write(control, &sends, sizeof sends), sizeof sends);
  exit(read(control, &go, 1) == 0 ? 0 : 1); /* its processor time is read before it goes */
}

static int listen_on_loopback(void) {
  int listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  struct sockaddr_in address = loopback(INADDR_LOOPBACK, 0);
  struct sockaddr *any = (struct sockaddr *)&address;
  socklen_t length = sizeof address;
  if (listener < 0 || bind(listener, any, length) != 0 || listen(listener, SOMAXCONN) != 0 ||
      getsockname(listener, any, &length) != 0) {
    fail("cannot listen: %s", strerror(errno));
  }
  options.port = ntohs(address.sin_port);
  return listener;
}

static void run_send(void) {
  struct request frame = baseline_frame();
  int controls[2], listener = listen_on_loopback();
  if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, controls) != 0) fail("no pair of sockets");
  pid_t sender = fork();
  if (sender < 0) fail("cannot fork: %s", strerror(errno));
  if (sender == 0) {
    close(controls[0]);
    send_rounds(listener, controls[1], &frame);
  }
  close(controls[1]);
  close(listener);

  load.subscribers = allocate((size_t)options.subscribers, sizeof *load.subscribers);
  for (int i = 0; i < options.subscribers; i++) open_connection(&load.subscribers[i], READER, i, NULL);
  char go = 0;
  u64 sends = 0;
  exchange(read(controls[0], &go, 1), 1);
  watch_server(sender);
  begin_window();
  exchange(write(controls[0], &go, 1), 1);
  turn_until(all_readers_ended, options.duration_ms, "draining the baseline");
  end_window();
  exchange(read(controls[0], &sends, sizeof sends), sizeof sends);
  if (load.received_bytes != sends * frame.length) fail("the baseline lost bytes");
  close(controls[0]);
  waitpid(sender, NULL, 0);

  print_window("send");
  printf(",\"subscribers\":%ld,\"frameBytes\":%zu", options.subscribers, frame.length);
  printf(",\"sends\":%llu,\"sendsPerSecond\":%.1f", sends, (double)sends / window_s());
  printf(",\"megabytesPerSecond\":%.3f}\n", (double)load.received_bytes / 1e6 / window_s());
}

static const struct mode {
  const char *name;
  void (*run)(void);
  bool needs_server;
  const char *doc;
} modes[] = {
    {"send", run_send, false, "the baseline: a plain loop of send(2), one frame a call, over --subscribers"},
    {"publish", run_publish, true, "--publishers in a closed loop for --duration-ms, nobody listening"},
    {"fanout", run_fanout, true, "the same with --subscribers, until all have the last acknowledged event"},
    {"latency", run_latency, true, "--rate publishes a second, and how late they reach --subscribers"},
    {"storm", run_storm, true, "--subscribers resume at once, --events behind; --times over"},
    {"surge", run_surge, true, "the same over and over, each on its own, until stdin closes"},
    {"peer", run_peer, true, "a fan-out of any server that takes POST and delivers SSE; --rate 0: closed loop"},
    {"ask", run_ask, true, "--publishers that send --request and wait for --answer-lines, in a closed loop"},
    {"idle", run_idle, true, "--subscribers that wait until stdin closes"},
};

static const struct number_option {
  const char *name;
  long *value;
  long min, max;
  const char *doc;
} number_options[] = {
    {"--port", &options.port, 1, 65535, "of the server on 127.0.0.1"},
    {"--streams", &options.streams, 1, 100000, "over which subscribers and publishes of `fanout` are spread evenly"},
    {"--subscribers", &options.subscribers, 1, 1000000, "connections that receive"},
    {"--slow", &options.slow, 0, 1000000, "more of them, that read little at a time and are not counted"},
    {"--publishers", &options.publishers, 1, 10000, "connections that publish, each one request at a time"},
    {"--events", &options.events, 1, 10000000, "how far behind a storm comes back"},
    {"--event-bytes", &options.event_bytes, 1, 65535, "of an event's data"},
    {"--batch", &options.batch, 1, 65535, "events a publish; more than one go as NDJSON"},
    {"--msgpack", &options.msgpack, 0, 1, "1: as MessagePack"},
    {"--duration-ms", &options.duration_ms, 1, 3600000, "how long is published or sent"},
    {"--times", &options.times, 1, 10000, "storms in a row"},
    {"--spread-ms", &options.spread_ms, 0, 3600000, "time within which a surge begins"},
    {"--answer-lines", &options.answer_lines, 1, 100, "of an answer to `ask`"},
    {"--rate", &options.rate, 0, 1000000, "publishes a second in an open loop"},
    {"--cpu", &options.cpu, -1, CPU_SETSIZE - 1, "run on this one only"},
    {"--sender-cpu", &options.sender_cpu, -1, CPU_SETSIZE - 1, "the sender of `send` runs on this one only"},
    {"--server-pid", &options.server_pid, 1, 1L << 30, "whose processor time to report"},
};

enum {
  MODES = sizeof modes / sizeof *modes,
  NUMBER_OPTIONS = sizeof number_options / sizeof *number_options,
};

static const struct text_option {
  const char *name;
  const char **value;
  const char *doc;
} text_options[] = {
    {"--stream", &options.stream, "its name; one that is new to the server"},
    {"--publish-path", &options.publish_path, "of a peer"},
    {"--subscribe-path", &options.subscribe_path, "of a peer"},
    {"--preface", &options.preface, "what `ask` sends once; @@@@ is the connection's number"},
    {"--request", &options.request, "what `ask` sends over and over"},
    {"--answer-prefix", &options.answer_prefix, "how the first line of an answer to `ask` begins"},
};

enum { TEXT_OPTIONS = sizeof text_options / sizeof *text_options };

__attribute__((noreturn)) static void usage(const char *problem, const char *at) {
  fprintf(stderr, "load: %s%s\n\nusage: load MODE [OPTION VALUE]...\n\nmodes:\n", problem, at);
  for (int i = 0; i < MODES; i++) fprintf(stderr, "  %-14s %s\n", modes[i].name, modes[i].doc);
  fputs("\noptions:\n", stderr);
  for (int i = 0; i < TEXT_OPTIONS; i++) {
    fprintf(stderr, "  %-16s %s\n", text_options[i].name, text_options[i].doc);
  }
  for (int i = 0; i < NUMBER_OPTIONS; i++) {
    const struct number_option *option = &number_options[i];
    fprintf(stderr, "  %-16s %s (%ld to %ld)\n", option->name, option->doc, option->min, option->max);
  }
  exit(2);
}

static const struct mode *find_mode(const char *name) {
  for (int i = 0; i < MODES; i++) {
    if (strcmp(modes[i].name, name) == 0) return &modes[i];
  }
  usage("no such mode: ", name);
}

static void read_option(const char *name, const char *text) {
  for (int i = 0; i < TEXT_OPTIONS; i++) {
    if (strcmp(text_options[i].name, name) != 0) continue;
    *text_options[i].value = text;
    return;
  }
  for (int i = 0; i < NUMBER_OPTIONS; i++) {
    const struct number_option *option = &number_options[i];
    if (strcmp(option->name, name) != 0) continue;
    char *end;
    *option->value = strtol(text, &end, 10);
    if (end == text || *end != '\0') usage("not a number: ", name);
    if (*option->value < option->min || *option->value > option->max) usage("out of range: ", name);
    return;
  }
  usage("no such option: ", name);
}

static void raise_descriptor_limit(void) {
  struct rlimit limit;
  getrlimit(RLIMIT_NOFILE, &limit);
  limit.rlim_cur = limit.rlim_max;
  setrlimit(RLIMIT_NOFILE, &limit);
  unsigned long needed = (unsigned long)(options.subscribers + options.slow + options.publishers + DESCRIPTORS_SPARE);
  unsigned long allowed = (unsigned long)limit.rlim_cur;
  if (needed > allowed) fail("needs %lu descriptors, may open %lu", needed, allowed);
}

int main(int count, char **arguments) {
  if (count < 2) usage("no mode", "");
  const struct mode *mode = find_mode(arguments[1]);
  for (int i = 2; i < count; i += 2) {
    if (i + 1 == count) usage("no value for ", arguments[i]);
    read_option(arguments[i], arguments[i + 1]);
  }
  if (mode->needs_server && options.port == 0) usage("needed: ", "--port");
  if (options.server_pid > 0) watch_server((pid_t)options.server_pid);
  raise_descriptor_limit();
  pin_to(options.cpu);
  load.epoll = epoll_create1(EPOLL_CLOEXEC);
  if (load.epoll < 0) fail("epoll: %s", strerror(errno));
  prepare_frame_tail();
  load.streams = allocate((size_t)options.streams, sizeof *load.streams);
  mode->run();
  return 0;
}
