/**
 * Hot counters: plain words in shared memory, one block per edge, written by that edge alone and read by
 * whoever renders metrics. An f64 each: aligned, so that no supported processor tears it.
 *
 * COUNTER BLOCK: f64 words at the indexes of `Counter`, then the histograms.
 */

import { assert } from '../assert.js';

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
  /** Publishes that had been appended before, and were answered as at first. */
  duplicates: 35,
  /** Publishes refused because no more producers or keys can be remembered. */
  refusedProducers: 36,
  /** Publishes refused because others of their producer have to come first. */
  producerGaps: 37,
  /** Publishes refused because a newer epoch of their producer has begun. */
  producersFenced: 38,
  /** Publishes that had been appended too long ago to say where. */
  publishesForgotten: 39,
  /** Gauge: connections that are WebSockets. */
  webSockets: 40,
  /** Requests without a credential, or with one that is not accepted. */
  requestsUnauthorized: 41,
  /** Requests of somebody who may not. */
  requestsForbidden: 42,
  /** Subscriptions that ended because their token or key did. */
  subscribersExpired: 43,
  /** Publishes refused because their key or address is over its rate. */
  refusedRate: 44,
  /** Subscriptions refused for the limit of all. */
  subscribersRefused: 45,
  streamSubscribersRefused: 46,
  addressSubscribersRefused: 47,
  /** Replays refused because their address is over its budget. */
  replaysLimited: 48,
  /** Replays refused because the loop is late. */
  shedReplays: 49,
  /** Subscriptions refused because the loop is late. */
  shedSubscriptions: 50,
  /** Rings whose memory another stream was given; their events are in the durable log. */
  reclaimedRings: 51,
  /** Gauge: connections with a request under way, event streams and WebSockets among them. */
  connectionsInUse: 52,
  /** Connections closed as soon as they were accepted, for want of descriptors. */
  connectionsDropped: 53,
  /** Messages of WebSocket peers. */
  messages: 54,
  /** Those refused because too many wait for their answers. */
  messagesRefused: 55,
  /** Publishes refused because named subscribers have not acknowledged what would have to go. */
  refusedHeld: 56,
  /** Resumes refused because the server does not have the cursor that is kept for them. */
  unavailableCursorUnknown: 57,
  /** Subscriptions by prefix refused or cut because their streams became too many. */
  prefixesOverLimit: 58,
} as const;

const COUNTERS_LENGTH = 64;

/** A histogram in an edge's block: its place, and the upper bounds of its buckets; one more bucket has none. */
export interface CounterHistogramShape {
  readonly index: number;
  readonly bounds: readonly number[];
}

/** Events. */
const LAG_BOUNDS = [0, 1, 10, 100, 1_000, 10_000, 100_000, 1_000_000];
const CATCH_UP_SECONDS_BOUNDS = [0.01, 0.05, 0.25, 1, 5, 15, 60, 300];

export const CounterHistogram = {
  /** Behind the head by what was written, events. */
  lagWritten: { index: 0, bounds: LAG_BOUNDS },
  /** Behind the head by what was delivered, events. */
  lagDelivered: { index: 1, bounds: LAG_BOUNDS },
  /** From the durable log back into the ring. */
  catchUpSeconds: { index: 2, bounds: CATCH_UP_SECONDS_BOUNDS },
} as const satisfies Record<string, CounterHistogramShape>;

/** As many buckets as the histogram with the most has, and the sum. */
const HISTOGRAM_LENGTH = LAG_BOUNDS.length + 2;
const HISTOGRAMS = Object.values(CounterHistogram);
assert(
  HISTOGRAMS.every(({ index, bounds }, at) => index === at && bounds.length + 2 <= HISTOGRAM_LENGTH),
  'counters: each histogram has a place of its own, and fits it',
);

const BLOCK_LENGTH = COUNTERS_LENGTH + HISTOGRAMS.length * HISTOGRAM_LENGTH;
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

  observe({ index, bounds }: CounterHistogramShape, value: number): void {
    const base = COUNTERS_LENGTH + index * HISTOGRAM_LENGTH;
    let bucket = 0;
    while (bucket < bounds.length && value > (bounds[bucket] as number)) bucket++;
    this.add(base + bucket, 1);
    this.add(base + HISTOGRAM_LENGTH - 1, value);
  }

  /** Observations per bucket (not cumulated; the last is above all bounds) and their sum. */
  observed({ index, bounds }: CounterHistogramShape): { buckets: number[]; sum: number } {
    const base = COUNTERS_LENGTH + index * HISTOGRAM_LENGTH;
    const buckets = Array.from(this.#words.subarray(base, base + bounds.length + 1));
    return { buckets, sum: this.get(base + HISTOGRAM_LENGTH - 1) };
  }
}
