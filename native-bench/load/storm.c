#include "modes.h"
#include "options.h"
#include "publisher.h"
#include "subscriber.h"
#include "window.h"

#include <stdio.h>

static void resume(long index) {
  struct stream *stream = load.streams;
  open_connection(&load.subscribers[index], &SUBSCRIBER, (int)index, stream, options.port, &stream->subscribe);
}

/* The clock runs from the first connect to the last byte. */
static void storm_once(void) {
  load.caught_up = 0;
  begin_window();
  for (long i = 0; i < options.subscribers; i++) resume(i);
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

void run_storm(void) {
  prepare_storm();
  for (long i = 0; i < options.times; i++) {
    storm_once();
    settle();
    close_connections(load.subscribers, options.subscribers);
    settle(); /* so that the server's part of the closing is over when the next clock starts */
  }
  print_storms("storm", options.times, published_events() * (u64)options.subscribers * (u64)options.times);
}

/*
 * A storm without an end: the subscribers come within --spread-ms, and whoever has caught up breaks off and comes
 * back as far behind as at first. Goes on until there is something on stdin, or its end; says when it begins.
 */
void run_surge(void) {
  prepare_storm();
  u64 interval_ns = (u64)options.spread_ms * 1000000u / (u64)options.subscribers, resumes = 0, deliveries = 0;
  long opened = 0;
  puts("{\"mode\":\"surge\",\"began\":1}");
  fflush(stdout);
  begin_window();
  while (!has_input()) {
    while (opened < options.subscribers && now_ns() >= window_began_ns() + interval_ns * (u64)opened) resume(opened++);
    turn(opened < options.subscribers ? 1 : TURN_MS / 10);
    for (long i = 0; i < opened; i++) {
      if (!has_all(&load.subscribers[i])) continue;
      deliveries += published_events();
      resumes++;
      close_connections(&load.subscribers[i], 1);
      resume(i);
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
