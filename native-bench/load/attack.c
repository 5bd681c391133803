/*
 * Those who only want to be in the way, until stdin closes: requests that are begun and never ended, connections that
 * come and go without a word, and requests whose token is forged. None of them may get anything.
 */
#include "modes.h"
#include "connection.h"
#include "options.h"
#include "window.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
  SILENT = 256, /* the oldest goes when the next one comes */
  FORGED_BYTES = 8,
};

static struct {
  struct connection *half_open, *silent, *forgers;
  struct connection **idle; /* forgers whose answer has come */
  long idle_count;
  struct request half, forged;
  char *signature; /* within `forged` */
  u64 begun_again, connects, forgeries, refused;
} attack;

static struct request make_request(const char *what, const char *header) {
  struct request request;
  int length = asprintf(&request.bytes, "%s HTTP/1.1\r\nHost: 127.0.0.1:%ld\r\n%s", what, options.port, header);
  if (length < 0) fail("no memory");
  request.length = (size_t)length;
  return request;
}

static void prepare_attack(void) {
  char line[LINE_BYTES], target[LINE_BYTES];
  snprintf(target, sizeof target, "GET /v1/streams/%s/state", options.stream);
  snprintf(line, sizeof line, "%s\r\n\r\n", options.header);
  attack.half = make_request(target, "X-Never-Ends: ");
  attack.forged = make_request(target, line);
  char *dot = strrchr(attack.forged.bytes, '.');
  if (!*options.header || dot == NULL || strlen(dot) < 2 * FORGED_BYTES) fail("needed: --header with a signed token");
  attack.signature = dot + 1;
}

/* The server may end it, for it makes no progress; then it begins again. */
static void begin_again(struct connection *c) {
  close_connections(c, 1);
  c->sent = 0;
  attack.begun_again++;
  reopen(c);
  send_request(c);
}

static void take_refusal(struct connection *c, const char *bytes, size_t count) {
  for (;;) {
    if (c->phase == ANSWER_BODY) {
      if (!skip_body(c, &bytes, &count)) return;
      c->phase = HEAD;
      attack.refused++;
      attack.idle[attack.idle_count++] = c;
    }
    const char *text = take_line(&c->http, &bytes, &count), *value;
    if (!text) return;
    if (*text == '\0') c->phase = ANSWER_BODY;
    else if ((value = field_value(text, "content-length:"))) c->body_left = strtoul(value, NULL, 10);
    else if (field_value(text, "HTTP/") && !field_value(text, "HTTP/1.1 401 ")) fail("a forged token: %s", text);
  }
}

static void take_unasked(struct connection *c, const char *bytes, size_t count) {
  if (count > 0) fail("%s %d was sent \"%.*s\"", c->role->name, c->index, (int)count, bytes);
}

static void hang_up(struct connection *c) { close_connections(c, 1); }

static const struct role HALF_OPEN = {.name = "half-open request", .take = take_unasked, .ended = begin_again};
static const struct role CALLER = {.name = "silent connection", .take = take_unasked, .ended = hang_up};
static const struct role FORGER = {.name = "forger", .take = take_refusal};

static void connect_silently(void) {
  struct connection *c = &attack.silent[attack.connects++ % SILENT];
  if (c->role) close_connections(c, 1);
  open_connection(c, &CALLER, (int)(c - attack.silent), NULL, options.port, NULL);
}

/* Another token each time, or the server would know the answer. */
static void forge(void) {
  if (attack.idle_count == 0) return;
  struct connection *c = attack.idle[--attack.idle_count];
  char digits[FORGED_BYTES + 1];
  snprintf(digits, sizeof digits, "%08llx", attack.forgeries++ & 0xffffffffu);
  memcpy(attack.signature, digits, FORGED_BYTES);
  c->request = &attack.forged;
  c->sent = 0;
  send_request(c);
  if (c->sent < attack.forged.length) fail("forger %d: its request does not fit its socket", c->index);
}

/* Whether the half-open requests up to this one are with the server. */
static bool stand(long index) {
  static long standing;
  while (standing <= index && attack.half_open[standing].sent == attack.half.length) standing++;
  return standing > index;
}

static bool refused_one(void) { return attack.refused > 0; }

static void open_attack(void) {
  attack.half_open = allocate((size_t)options.subscribers, sizeof *attack.half_open);
  attack.silent = allocate(SILENT, sizeof *attack.silent);
  attack.forgers = allocate((size_t)options.publishers, sizeof *attack.forgers);
  attack.idle = allocate((size_t)options.publishers, sizeof *attack.idle);
  for (int i = 0; i < options.publishers; i++) {
    open_connection(&attack.forgers[i], &FORGER, i, NULL, options.port, NULL);
    attack.idle[attack.idle_count++] = &attack.forgers[i];
  }
  settle();
  for (int i = 0; i < options.subscribers; i++) {
    while (!stand(i - options.opening)) turn(TURN_MS);
    open_connection(&attack.half_open[i], &HALF_OPEN, i, NULL, options.port, &attack.half);
  }
  while (!stand(options.subscribers - 1)) turn(TURN_MS);
  forge();
  turn_until(refused_one, 0, "waiting for the first refusal");
}

void run_attack(void) {
  prepare_attack();
  open_attack();
  puts("{\"mode\":\"attack\",\"began\":1}");
  fflush(stdout);
  begin_window();
  u64 interval_ns = 1000000000u / (u64)options.rate;
  for (u64 next = 0; !has_input();) {
    for (; now_ns() >= window_began_ns() + interval_ns * next; next++) {
      connect_silently();
      forge();
    }
    turn(1);
  }
  end_window();
  close_connections(attack.half_open, options.subscribers);
  close_connections(attack.forgers, options.publishers);
  for (long i = 0; i < SILENT; i++) {
    if (attack.silent[i].role) close_connections(&attack.silent[i], 1);
  }
  print_window("attack");
  printf(",\"halfOpen\":%ld,\"begunAgain\":%llu", options.subscribers, attack.begun_again);
  printf(",\"connects\":%llu,\"refusedTokens\":%llu}\n", attack.connects, attack.refused);
}
