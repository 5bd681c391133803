/**
 * Who reads a stream, those furthest behind first (contract 2.5). Cold path: for people who look on.
 */

import type { EdgeStream } from './edge-stream.js';
import type { Subscription } from './subscription.js';

/** A subscription, as a list of readers has it. */
export interface ReaderState {
  readonly by: 'sse' | 'sse-many' | 'websocket';
  readonly state: 'ready' | 'stalled' | 'waiting';
  /** Newest seq written to its socket, and newest that is known to have left the process. */
  readonly written: number;
  readonly delivered: number;
  /** Who reads; empty where that is not known. */
  readonly principal: string;
}

/** The readers of one stream, on one edge or on all of them. */
export interface Readers {
  /** Those furthest behind, first. */
  readonly readers: readonly ReaderState[];
  /** All that there are. */
  readonly count: number;
}

/** The subscriptions that have been delivered least, at most so many, in that order. */
export function slowestOf(stream: EdgeStream, countMax: number): Subscription[] {
  let slowest: Subscription[] = [];
  for (const subscription of stream.subscriptions()) {
    slowest.push(subscription);
    // Cut back now and then, so that a hundred thousand readers cost no list of that length.
    if (slowest.length >= 4 * countMax) slowest = furthestBehind(slowest, countMax);
  }
  return furthestBehind(slowest, countMax);
}

/** What several edges say, as if one had said it. */
export function mergeReaders(parts: readonly Readers[], countMax: number): Readers {
  const readers = furthestBehind(
    parts.flatMap((part) => part.readers),
    countMax,
  );
  return { readers, count: parts.reduce((sum, { count }) => sum + count, 0) };
}

function furthestBehind<R extends { readonly delivered: number }>(readers: R[], countMax: number): R[] {
  return readers.sort((a, b) => a.delivered - b.delivered).slice(0, countMax);
}
