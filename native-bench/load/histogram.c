#include "histogram.h"

void record_latency(struct histogram *latencies, u64 ns) {
  unsigned shift = ns < BUCKETS_PER_POWER ? 0 : 63 - BUCKET_BITS - (unsigned)__builtin_clzll(ns);
  latencies->buckets[shift * BUCKETS_PER_POWER + (ns >> shift)]++;
  latencies->count++;
}

double latency_us(const struct histogram *latencies, double percentile) {
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
