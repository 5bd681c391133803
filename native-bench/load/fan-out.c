#include "frames.h"
#include "modes.h"
#include "options.h"
#include "publisher.h"
#include "subscriber.h"
#include "window.h"

#include <stdint.h>
#include <stdio.h>
#include <sys/prctl.h>

void run_publish(void) {
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

static u64 deliveries_so_far(void) {
  u64 deliveries = 0;
  for (long i = 0; i < options.subscribers; i++) deliveries += load.subscribers[i].seq - stream_of((int)i)->start.seq;
  return deliveries;
}

/* A stream takes memory with its first event; of many streams those that follow are measured. */
static void publish_to_each(void) {
  publish_all(STALL_MS, (u64)options.streams);
  turn_until(all_caught_up, 0, "waiting for the first deliveries");
  load.caught_up = 0;
  forget_publishes();
}

void run_fanout(void) {
  open_subscribers_gently();
  open_publishers();
  if (options.streams > 1) publish_to_each();
  u64 before = deliveries_so_far();
  load.received_bytes = 0;

  begin_window();
  publish_all(options.duration_ms, UINT64_MAX);
  turn_until(all_caught_up, 0, "waiting for the last deliveries");
  end_window();
  settle();

  u64 deliveries = deliveries_so_far();
  check_deliveries(deliveries);
  close_connections(load.subscribers, options.subscribers);
  close_connections(load.slow, options.slow);
  close_connections(load.publishers, options.publishers);
  print_window("fanout");
  print_publishing();
  print_deliveries(deliveries - before);
  puts("}");
}

/*
 * An open loop publishes when it is time to, whether or not the server keeps up. What is late is counted from
 * when it was due, so that a stall is seen in every event that it held up. Which event was due when is known
 * from the answers; deliveries that come before theirs are kept until the end.
 */
static struct {
  u64 events;
  u64 *due_ns; /* of the events after the stream's start, in the order of their seqs */
  struct delivery {
    u64 seq, at_ns;
  } *deliveries;
  u64 delivery_count;
  struct histogram latencies;
} open_loop;

static void note_delivery(u64 seq) {
  if (open_loop.delivery_count == open_loop.events * (u64)options.subscribers) fail("seq %llu is one too many", seq);
  open_loop.deliveries[open_loop.delivery_count++] = (struct delivery){seq, load.received_ns};
}

static void note_publish(const struct connection *c) {
  u64 index = c->answer.seq - c->stream->start.seq - 1;
  if (index >= open_loop.events) fail("publisher %d: acknowledged seq %llu", c->index, c->answer.seq);
  open_loop.due_ns[index] = c->due_ns;
}

static void prepare_open_loop(void) {
  open_loop.events = (u64)options.rate * (u64)options.duration_ms / 1000;
  if (open_loop.events == 0) fail("nothing is due within %ld ms", options.duration_ms);
  open_loop.due_ns = allocate(open_loop.events, sizeof *open_loop.due_ns);
  open_loop.deliveries = allocate(open_loop.events * (u64)options.subscribers, sizeof *open_loop.deliveries);
  load.times_receipts = true;
  on_delivery = note_delivery;
  on_publish = note_publish;
}

/* How long after it was due an event reaches a subscriber. */
void run_latency(void) {
  prctl(PR_SET_TIMERSLACK, 1, 0, 0, 0);
  open_subscribers_gently();
  open_publishers();
  prepare_open_loop();
  load.received_bytes = 0;

  begin_window();
  publish_on_time(open_loop.events);
  turn_until(all_caught_up, 0, "waiting for the last deliveries");
  end_window();
  settle();

  check_deliveries(open_loop.delivery_count);
  for (u64 i = 0; i < open_loop.delivery_count; i++) {
    const struct delivery *delivery = &open_loop.deliveries[i];
    u64 due_ns = open_loop.due_ns[delivery->seq - load.streams[0].start.seq - 1];
    record_latency(&open_loop.latencies, delivery->at_ns - due_ns);
  }
  close_connections(load.subscribers, options.subscribers);
  close_connections(load.publishers, options.publishers);
  print_window("latency");
  print_publishing();
  print_deliveries(open_loop.delivery_count);
  printf(",\"deliveryP50Us\":%.1f,\"deliveryP99Us\":%.1f,\"deliveryMaxUs\":%.1f}\n",
         latency_us(&open_loop.latencies, 50), latency_us(&open_loop.latencies, 99),
         latency_us(&open_loop.latencies, 100));
}

/* Says when all are there, then holds (and verifies) them until stdin closes. */
void run_idle(void) {
  begin_window();
  open_subscribers_gently();
  end_window();
  print_window("idle");
  printf(",\"subscribers\":%ld}\n", options.subscribers);
  fflush(stdout);
  hold_until_input_ends();
  close_connections(load.subscribers, options.subscribers);
}
