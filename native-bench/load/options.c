#include "options.h"

#include "process.h"

#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct options options = {
    .stream = "bench", .header = "", .body_before = "", .body_after = "", .cpu = -1, .sender_cpu = -1, .streams = 1,
    .subscribers = 500, .publishers = 1, .events = 1000, .event_bytes = 100, .batch = 1, .opening = 128, .duration_ms = 3000,
    .times = 1, .rate = 100, .spread_ms = 2000,
};

static const struct number_option {
  const char *name;
  long *value;
  long min, max;
  const char *doc;
} number_options[] = {
    {"--port", &options.port, 1, 65535, "of the server on 127.0.0.1"},
    {"--publish-port", &options.publish_port, 1, 65535, "of a peer that takes publishes elsewhere"},
    {"--streams", &options.streams, 1, 100000, "over which subscribers and publishes of a fan-out are spread evenly"},
    {"--subscribers", &options.subscribers, 1, 1000000, "connections that receive"},
    {"--opening", &options.opening, 1, 1000000, "of these at a time, while it sets up"},
    {"--slow", &options.slow, 0, 1000000, "more of them, that read little at a time and are not counted"},
    {"--publishers", &options.publishers, 1, 10000, "connections that publish, each one request at a time"},
    {"--producer", &options.producer, 0, 1, "1: each publisher counts its requests, so that none is taken twice"},
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
};

static const struct text_option {
  const char *name;
  const char **value;
  const char *doc;
} text_options[] = {
    {"--stream", &options.stream, "its name; one that is new to the server"},
    {"--header", &options.header, "one more line of each request to the broker, such as its token"},
    {"--publish-path", &options.publish_path, "of a peer; @ is the number of the stream"},
    {"--subscribe-path", &options.subscribe_path, "of a peer; @ is the number of the stream"},
    {"--body-before", &options.body_before, "what a peer needs before an event's data"},
    {"--body-after", &options.body_after, "and behind it"},
    {"--preface", &options.preface, "what `ask` sends once; @ is the number of the connection"},
    {"--request", &options.request, "what `ask` sends over and over"},
    {"--answer-prefix", &options.answer_prefix, "how the first line of an answer to `ask` begins"},
    {"--server-pids", &options.server_pids, "whose processor time to report, separated by commas"},
};

enum {
  NUMBER_OPTIONS = sizeof number_options / sizeof *number_options,
  TEXT_OPTIONS = sizeof text_options / sizeof *text_options,
};

static const struct mode *known_modes;
static int known_mode_count;

__attribute__((noreturn)) static void usage(const char *problem, const char *at) {
  fprintf(stderr, "load: %s%s\n\nusage: load MODE [OPTION VALUE]...\n\nmodes:\n", problem, at);
  for (int i = 0; i < known_mode_count; i++) fprintf(stderr, "  %-16s %s\n", known_modes[i].name, known_modes[i].doc);
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
  for (int i = 0; i < known_mode_count; i++) {
    if (strcmp(known_modes[i].name, name) == 0) return &known_modes[i];
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

const struct mode *read_command(int count, char **arguments, const struct mode *modes, int mode_count) {
  known_modes = modes;
  known_mode_count = mode_count;
  if (count < 2) usage("no mode", "");
  const struct mode *mode = find_mode(arguments[1]);
  for (int i = 2; i < count; i += 2) {
    if (i + 1 == count) usage("no value for ", arguments[i]);
    read_option(arguments[i], arguments[i + 1]);
  }
  if (mode->needs_server && options.port == 0) usage("needed: ", "--port");
  return mode;
}
