/**
 * Hot counters: plain words in shared memory, one block per edge, written by that edge alone and read by
 * whoever renders metrics. An f64 each: aligned, so that no supported processor tears it.
 *
 * COUNTER BLOCK: f64 words at the indexes of `Counter`, then the lag histograms.
 */

/** Index of each counter in an edge's block. Gauges are marked; all else only grows. */
export const Counter = {
  /** Publish requests that appended. */
  publishes: 0,
  publishedEvents: 1,
  /** Bytes of request bodies that were appended. */
  publishedBytes: 2,
  /** Events written to subscribers; one event to 500 subscribers counts 500. */
  deliveries: 3,
  deliveredBytes: 4,
  /** Times a subscriber's socket did not take all of a write. */
  stalls: 5,
  /** Subscribers that eviction overtook while connected. */
  overtaken: 6,
  /** Events evicted before a connected subscriber was sent them. */
  evictedUndelivered: 7,
  /** Runs that did not begin with the expected event. Must stay 0. */
  seamViolations: 8,
  /** Copies out of a ring thrown away because the floor passed them. */
  discardedCopies: 9,
  /** Gauge. */
  connections: 10,
  /** Gauge. */
  subscribers: 11,
  /** Gauge: subscribers whose socket takes nothing at the moment. */
  subscribersStalled: 12,
  resumedLive: 13,
  resumedRing: 14,
  /** Subscriptions without a cursor. */
  joinedLive: 15,
  unavailableEvicted: 16,
  unavailableEpochChanged: 17,
  unavailableAheadOfHead: 18,
  unavailableMalformed: 19,
  requests: 20,
  /** Answers of 400 and above. */
  requestErrors: 21,
  pages: 22,
  heartbeats: 23,
  connectionsRefused: 24,
  connectionsOpened: 25,
  /** Gauge: seconds, over the last sampling interval. */
  loopDelayP50Seconds: 26,
  /** Gauge: seconds. */
  loopDelayP99Seconds: 27,
  /** Gauge: seconds. */
  loopDelayMaxSeconds: 28,
  /** Subscriptions and paged reads refused for their cursor. */
  resumeRefused: 29,
  /** Resumes that begin in the durable log. */
  resumedLog: 30,
  /** Bytes of runs that were read from the durable log and written to subscribers. */
  replayedBytes: 31,
  /** Publishes refused because the stream's memory holds only what waits for its commit. */
  refusedUncommitted: 32,
  /** Publishes refused because the arena had no room. */
  refusedMemory: 33,
  /** Publishes refused because the durable log could not commit. */
  refusedLog: 34,
} as const;

const COUNTERS_LENGTH = 40;

/** Upper bounds of the lag histograms, events. The last bucket has none. */
export const LAG_BOUNDS = [0, 1, 10, 100, 1_000, 10_000, 100_000, 1_000_000] as const;
const HISTOGRAM_LENGTH = LAG_BOUNDS.length + 2;

/** The lag histograms: behind the head by what was written, and by what was delivered. */
export const LagHistogram = { written: 0, delivered: 1 } as const;

const BLOCK_LENGTH = COUNTERS_LENGTH + 2 * HISTOGRAM_LENGTH;
/** Blocks stand on cache lines of their own. */
const BLOCK_BYTES = Math.ceil((BLOCK_LENGTH * 8) / 128) * 128;

export function createCounters(edges: number): SharedArrayBuffer {
  return new SharedArrayBuffer(edges * BLOCK_BYTES);
}

/** The blocks of all edges, for readers. */
export function countersOfAll(buffer: SharedArrayBuffer): Counters[] {
  return Array.from({ length: buffer.byteLength / BLOCK_BYTES }, (_, edge) => new Counters(buffer, edge));
}

/** One edge's block. Single writer: that edge. */
export class Counters {
  readonly #words: Float64Array;

  constructor(buffer: SharedArrayBuffer, edge: number) {
    this.#words = new Float64Array(buffer, edge * BLOCK_BYTES, BLOCK_LENGTH);
  }

  add(counter: number, amount: number): void {
    this.#words[counter] = (this.#words[counter] as number) + amount;
  }

  set(counter: number, value: number): void {
    this.#words[counter] = value;
  }

  get(counter: number): number {
    return this.#words[counter] as number;
  }

  /** Observes one subscriber's lag, events. */
  observeLag(histogram: number, lag: number): void {
    const base = COUNTERS_LENGTH + histogram * HISTOGRAM_LENGTH;
    let bucket = 0;
    while (bucket < LAG_BOUNDS.length && lag > (LAG_BOUNDS[bucket] as number)) bucket++;
    this.add(base + bucket, 1);
    this.add(base + HISTOGRAM_LENGTH - 1, lag);
  }

  /** Observations per bucket (not cumulated; the last is above all bounds) and their sum. */
  lagHistogram(histogram: number): { buckets: number[]; sum: number } {
    const base = COUNTERS_LENGTH + histogram * HISTOGRAM_LENGTH;
    const buckets = Array.from(this.#words.subarray(base, base + LAG_BOUNDS.length + 1));
    return { buckets, sum: this.get(base + HISTOGRAM_LENGTH - 1) };
  }
}
