/**
 * How far readers are behind what is committed, by what was written to their sockets and by what has left the
 * process. Cold path: looked at once a second and when metrics are asked for.
 */

import { Counter, CounterHistogram, type Counters } from '../ring/counters.js';
import { READ_OK, type RingReader } from '../ring/read.js';
import type { EdgeStream } from './edge-stream.js';

/** How far behind the readers of one stream are on this edge. */
export interface StreamLag {
  readonly name: string;
  readonly subscribers: number;
  /** Of the subscriber that is furthest behind, by what was delivered; events. */
  readonly lagMax: number;
}

/** How far behind the readers of a stream are, over all edges; events. */
export interface StreamLags {
  /** Of the subscriber furthest behind, by what was delivered; 0 without any, null where an edge has not said. */
  readonly lag: number | null;
  /** Of the named subscriber furthest behind, by what it has acknowledged. */
  readonly ackedLag: number;
}

/** Observes every subscriber's lag, and counts those that are stalled. */
export function sampleLag(streams: Iterable<EdgeStream>, reader: RingReader, counters: Counters): void {
  let stalled = 0;
  for (const stream of streams) {
    if (reader.look(stream) !== READ_OK) continue;
    const committed = reader.committedSeq;
    for (const subscription of stream.subscriptions()) {
      counters.observe(CounterHistogram.lagWritten, committed - subscription.cursor);
      counters.observe(CounterHistogram.lagDelivered, committed - subscription.delivered);
    }
    stalled += stream.stalled.length;
  }
  counters.set(Counter.subscribersStalled, stalled);
}

/** The lag of each stream, for those who want to know which it is. */
export function lagsOf(streams: Iterable<EdgeStream>, reader: RingReader): StreamLag[] {
  const lags: StreamLag[] = [];
  for (const stream of streams) {
    if (reader.look(stream) !== READ_OK) continue;
    let deliveredMin = reader.committedSeq;
    for (const subscription of stream.subscriptions()) {
      deliveredMin = Math.min(deliveredMin, subscription.delivered);
    }
    const lagMax = reader.committedSeq - deliveredMin;
    lags.push({ name: stream.name, subscribers: stream.subscribers, lagMax });
  }
  return lags;
}

/** The largest of what several edges say, by the stream's name. */
export function largestLags(lags: Iterable<StreamLag>): Map<string, number> {
  const largest = new Map<string, number>();
  for (const { name, lagMax } of lags) largest.set(name, Math.max(lagMax, largest.get(name) ?? 0));
  return largest;
}
