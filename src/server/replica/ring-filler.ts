/**
 * Puts what a replicated log has into the rings of this broker, where it is committed as soon as it is there (I4). The
 * rings are a cache: what finds no room is left out, and its readers get it from the log.
 *
 * Single writer of the streams of a replicated log: the main thread.
 */

import type { EventParts } from '../../core/event-parts.js';
import { FrameBatch } from '../../core/sse-frame.js';
import { ANY_HEAD, APPENDED, Appender } from '../../ring/append.js';
import { closeLogged, commitStream, skipTo } from '../../ring/lifecycle.js';
import type { Rings, StreamHandle } from '../../ring/rings.js';
import { LOG_EDGE, type Wakes } from '../../ring/wake-queue.js';

export interface RingFillerOptions {
  readonly rings: Rings;
  readonly wakes: Wakes;
  /** Unix time, milliseconds. */
  readonly now: () => number;
}

const FRAME_BYTES_MAX = 0xffff_ffff;

export class RingFiller {
  readonly #options: RingFillerOptions;
  readonly #appender: Appender;
  readonly #batch = new FrameBatch(FRAME_BYTES_MAX);

  constructor(options: RingFillerOptions) {
    this.#options = options;
    this.#appender = new Appender(options.rings);
  }

  /** The events after the ring's head, up to `head`; none is fine. */
  fill(stream: StreamHandle, parts: EventParts, { head, floor }: { head: number; floor: number }): void {
    const { rings, wakes } = this.#options;
    if (parts.ends.length > 0 && !this.#append(stream, parts)) skipTo(rings, stream, head);
    commitStream(rings, stream, { seq: head, logFloorSeq: floor });
    wakes.announce(stream.slot, -1);
  }

  /** Leaves events out, up to `head`. */
  skip(stream: StreamHandle, head: number): void {
    skipTo(this.#options.rings, stream, head);
  }

  close(stream: StreamHandle): void {
    closeLogged(this.#options.rings, stream);
    this.#options.wakes.announce(stream.slot, -1);
  }

  #append(stream: StreamHandle, { bytes, ends }: EventParts): boolean {
    const { wakes, now } = this.#options;
    const batch = this.#batch;
    batch.bytes = bytes;
    batch.size = bytes.length;
    batch.ends = ends as Uint32Array<ArrayBuffer>;
    batch.count = ends.length;
    const outcome = this.#appender.append(stream, batch, now(), ANY_HEAD);
    // There is no thread that would have to be told: it is committed already.
    wakes.settle(stream.slot, LOG_EDGE);
    return outcome === APPENDED;
  }
}
