/* Publishers of any protocol that answers each request with lines, the first of them with a known beginning. */
#include "modes.h"
#include "options.h"
#include "publisher.h"
#include "window.h"

#include <stdint.h>
#include <stdio.h>
#include <string.h>

static void take_lines(struct connection *c, const char *bytes, size_t count) {
  for (const char *text; (text = take_line(&c->http, &bytes, &count));) {
    if (c->request == NULL || c->sent < c->request->length || answers_missing() == 0) continue; /* a greeting */
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

static const struct role ASKER = {.name = "asker", .take = take_lines};

static struct request request_of(const char *template, int index) {
  struct request request = {.bytes = numbered(template, index)};
  request.length = strlen(request.bytes);
  return request;
}

void run_ask(void) {
  if (!options.request || !options.answer_prefix) fail("needed: --request and --answer-prefix");
  load.publishers = allocate((size_t)options.publishers, sizeof *load.publishers);
  for (int i = 0; i < options.publishers; i++) {
    struct connection *c = &load.publishers[i];
    struct request preface = request_of(options.preface ? options.preface : "", i);
    open_connection(c, &ASKER, i, NULL, options.port, NULL);
    send_without_delay(c);
    if (preface.length > 0) {
      settle(); /* the server greets first */
      c->request = &preface;
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
