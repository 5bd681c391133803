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
import type { Ending } from './ending.js';
import type { Rendering } from './rendering.js';

/** The way out, as the fan-out sees it. */
export interface Sink {
  /**
   * Hands bytes over; they are copied or sent before the call returns.
   * @returns true: all of it has left the process. False: the rest is buffered, so nothing more may be
   *   written until the sink reports that it drained.
   */
  write(frames: Uint8Array | string): boolean;
  /**
   * A sign of life, where nothing else was written for a while or the sink wants one all the same.
   * @param cursor where the peer is.
   * @param isNews whether the peer has not been given this position: a filter left events out (contract 4.9).
   * @returns as `write`.
   */
  beat(cursor: string, isNews: boolean): boolean;
  /** Ends the connection properly, and says why. */
  end(ending: Ending): void;
  /** Ends the connection without a proper end, so that the peer knows that something is missing. */
  cut(): void;
  readonly beats: Beats;
}

/** When signs of life are wanted: `quiet`: when nothing else was written for a while. `always`: as often, but under
 * load too, for the peer answers them. `moved`: also as soon as the cursor has moved, within a tick. */
export type Beats = 'quiet' | 'always' | 'moved';

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
  /** The edge's tick of the last sign of life, and the cursor then. */
  beatAtTick = 0;
  beatSeq: number;
  /** Ticks without a write after which a heartbeat is due. */
  quietTicksMax = 0;

  readonly stream: EdgeStream;
  readonly sink: Sink;
  /** Null: the peer takes frames as they are, and all of them. */
  readonly rendering: Rendering | null;
  /** Whether the peer asked to be told in-band when it cannot go on (contract 4.5). */
  readonly tellUnavailable: boolean;

  constructor(options: {
    stream: EdgeStream;
    sink: Sink;
    cursor: number;
    rendering: Rendering | null;
    tellUnavailable: boolean;
  }) {
    this.stream = options.stream;
    this.sink = options.sink;
    this.cursor = options.cursor;
    this.delivered = options.cursor;
    this.announced = options.cursor;
    this.beatSeq = options.cursor;
    this.rendering = options.rendering;
    this.tellUnavailable = options.tellUnavailable;
  }
}
