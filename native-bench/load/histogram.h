/*
 * Latencies in log-linear buckets, 32 to each power of two: a percentile is right within 3 %, and the
 * memory does not depend on how long the run is.
 */
#pragma once

#include "process.h"

enum {
  BUCKET_BITS = 5,
  BUCKETS_PER_POWER = 1 << BUCKET_BITS,
  BUCKETS = (65 - BUCKET_BITS) * BUCKETS_PER_POWER,
};

struct histogram {
  u64 count;
  u64 buckets[BUCKETS];
};

void record_latency(struct histogram *latencies, u64 ns);

/* The upper bound of the bucket that holds the percentile, in microseconds; 0 if nothing was recorded. */
double latency_us(const struct histogram *latencies, double percentile);
