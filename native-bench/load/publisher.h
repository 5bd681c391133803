/* Publishers: each has one request under way at a time, in a closed loop or an open one. */
#pragma once

#include "connection.h"
#include "histogram.h"

/* Of the broker: one event as text, or a batch as NDJSON or MessagePack (contract 3.1). */
void open_publishers(void);

/* The bytes of an answer to a request, whoever gives it. */
void take_answer_bytes(struct connection *c, const char *bytes, size_t count);

/* To be called with each whole answer: counts it, and goes on with the next request. */
void take_answer(struct connection *c);

/* In a closed loop until the time is over or the count is reached, and until the last answer is there. */
void publish_all(long duration_ms, u64 publishes_max);

/* An open loop of so many publishes at --rate, each when it is due, or as soon after as a publisher is free. */
void publish_on_time(u64 publishes);

/* Counts publishes and their latencies from here on. */
void forget_publishes(void);

u64 publishes(void);
u64 published_events(void);
long answers_missing(void);

void print_publishing(void);

/* Called for each answer to a publish that was due then, while it is set. */
extern void (*on_publish)(const struct connection *c);
