/**
 * One subscriber: a cursor into a stream and a socket to write to. Nothing is queued here (I7); what the
 * socket has not taken lies in the ring, and the cursor says from where.
 *
 *              write: all taken               write: not all taken
 *   ready ----------------------> ready    ready ------------------> stalled
 *   stalled --- drained ---> ready         ready --- next event only in the log ---> waiting
 *   waiting --- read from the log ---> ready  any --- end, cut, closed by the peer ---> ended
 */

import type { EdgeStream } from './edge-stream.js';

/** The way out, as the fan-out sees it. */
export interface Sink {
  /**
   * Hands bytes over; they are copied or sent before the call returns.
   * @returns true: all of it has left the process. False: the rest is buffered, so nothing more may be
   *   written until the sink reports that it drained.
   */
  write(frames: Uint8Array | string): boolean;
  /** Ends the response properly, after an optional last frame. */
  end(lastFrame?: string): void;
  /** Ends the connection without a proper end, so that the peer knows that something is missing. */
  cut(): void;
}

/** The event types that a peer wants (contract 4.9). Equal filters have equal keys. */
export interface TypeFilter {
  readonly key: string;
  readonly types: ReadonlySet<string>;
}

export type SubscriptionState = 'ready' | 'stalled' | 'waiting' | 'ended';

export class Subscription {
  state: SubscriptionState = 'ready';
  /** Newest seq written to the sink; the next one is `cursor + 1` (I1). */
  cursor: number;
  /** Newest seq that the sink's signals show to have left the process. Never decides what a resume sends. */
  delivered: number;
  /** Newest seq whose id the peer was given; behind `cursor` while a filter leaves events out (contract 4.9). */
  announced: number;
  /** Place in the stream's list of subscriptions in the same state, so that leaving it costs nothing. */
  listIndex = -1;
  /** Place in the edge's list of all subscriptions. */
  edgeIndex = -1;
  /** The edge's tick at which something was last written. A small integer, for these objects are many. */
  writtenAtTick = 0;
  /** Ticks without a write after which a heartbeat is due. */
  quietTicksMax = 0;

  readonly stream: EdgeStream;
  readonly sink: Sink;
  /** Null: the peer wants all types. */
  readonly filter: TypeFilter | null;
  /** Whether the peer asked to be told in-band when it cannot go on (contract 4.5). */
  readonly tellUnavailable: boolean;

  constructor(options: {
    stream: EdgeStream;
    sink: Sink;
    cursor: number;
    filter: TypeFilter | null;
    tellUnavailable: boolean;
  }) {
    this.stream = options.stream;
    this.sink = options.sink;
    this.cursor = options.cursor;
    this.delivered = options.cursor;
    this.announced = options.cursor;
    this.filter = options.filter;
    this.tellUnavailable = options.tellUnavailable;
  }
}
