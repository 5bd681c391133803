/**
 * The validated copy-out. Positions are taken under the stream's lock; the bytes are copied without it,
 * so that a reader never holds a publisher up, and are confirmed afterwards.
 *
 * Why the confirmation is sound on every processor: the evictor changes `floorPosition` (and `ringVersion`)
 * by a read-modify-write before it overwrites, and the reader reads them by a read-modify-write, which
 * changes nothing, after it copied. Two read-modify-writes of one word have an order. If the reader sees the
 * old value, its own came first and the evictor's synchronises with it: the copy happened before the
 * overwriting. A plain atomic load would prove nothing, for earlier reads may sink below it (S2, S3, I5).
 * However long the reader was away: positions wrap, but the version changes with each 2^30 bytes of evicted ones.
 *
 * Hot path: no allocation but for frames larger than any before, no closures.
 */

import { assert } from '../assert.js';
import * as layout from './layout.js';
import { lock, unlock } from './mutex.js';
import {
  byteOffsetOf,
  committedSeq,
  floorSeq,
  headSeq,
  lastWithin,
  positionOf,
  segmentOf,
} from './ring-memory.js';
import type { Rings, StreamHandle } from './rings.js';
import { f64At, i32At } from './rings.js';

/** The batch holds the frames after the cursor. */
export const READ_OK = 0;
/** The cursor is the newest committed event; `closed` says whether more can come. */
export const READ_CAUGHT_UP = 1;
/** The event after the cursor is not in the ring any more (I5). */
export const READ_OVERTAKEN = 2;
/** The handle is old: the stream was deleted. */
export const READ_GONE = 3;

/** A run of whole frames, copied out. Reused: valid until it is read into again. */
export class FrameRun {
  /** The frames, exactly. A view on a buffer that is kept for the next run. */
  frames: Uint8Array;
  firstSeq = 0;
  lastSeq = 0;
  #buffer: Uint8Array;

  constructor(bytesMax: number) {
    this.#buffer = new Uint8Array(bytesMax);
    this.frames = this.#buffer.subarray(0, 0);
  }

  /** Events in the run. */
  get count(): number {
    return this.lastSeq - this.firstSeq + 1;
  }

  reserve(length: number): void {
    if (length > this.#buffer.length) this.#buffer = new Uint8Array(2 ** Math.ceil(Math.log2(length)));
    this.frames = this.#buffer.subarray(0, length);
  }
}

/** Unlocked tries; the next copies under the lock, so that a writer at full speed cannot starve a reader. */
const TRIES_MAX = 4;

/** Single user: one thread. */
export class RingReader {
  /**
   * Lowest seq in the ring and in the durable log (0: there is none), newest committed seq, and whether the stream
   * is closed, at the last `look` or `read`.
   */
  floorSeq = 0;
  logFloorSeq = 0;
  committedSeq = 0;
  /** Newest seq that was appended, committed or not. */
  headSeq = 0;
  closed = false;
  /** Copies thrown away because the floor or the ring moved meanwhile. */
  discarded = 0;

  readonly #rings: Rings;
  #unit = 0;
  #order = 0;
  #version = 0;
  #position = 0;

  constructor(rings: Rings) {
    this.#rings = rings;
  }

  /** Lowest seq that can be read, wherever it is kept. */
  get lowestSeq(): number {
    return this.logFloorSeq === 0 ? this.floorSeq : Math.min(this.floorSeq, this.logFloorSeq);
  }

  /** Where the stream stands. @returns READ_OK or READ_GONE. */
  look(stream: StreamHandle): number {
    const lockAt = i32At(stream.slot, layout.LOCK_OFFSET);
    lock(this.#rings.i32, lockAt);
    const found = this.#look(stream);
    unlock(this.#rings.i32, lockAt);
    return found;
  }

  /**
   * Takes an edge's mark off a stream, unless there is more than it has seen. Under the lock, as an append sets the
   * mark: no append goes unseen (W1), and at no moment is the newest both unread and unmarked, for then another edge
   * could trim it.
   * @param seen how far the edge has read, and whether there is somebody to tell if the stream is gone.
   * @returns false when there is more; the mark stays.
   */
  settle(
    stream: StreamHandle,
    edge: number,
    seen: { seq: number; closed: boolean; hasReaders: boolean },
  ): boolean {
    const words = this.#rings.i32;
    const lockAt = i32At(stream.slot, layout.LOCK_OFFSET);
    lock(words, lockAt);
    const hasMore =
      this.#look(stream) === READ_GONE
        ? seen.hasReaders
        : this.committedSeq > seen.seq || this.closed !== seen.closed;
    if (!hasMore) Atomics.and(words, i32At(stream.slot, layout.DIRTY_MASK_OFFSET), ~(1 << edge));
    unlock(words, lockAt);
    return !hasMore;
  }

  /**
   * Reads whole frames after `afterSeq` into `run`: up to `bytesMax`, or one frame if it is larger.
   * @returns one of the constants above.
   */
  read(stream: StreamHandle, afterSeq: number, bytesMax: number, run: FrameRun): number {
    return this.#read(stream, afterSeq, bytesMax, run, null);
  }

  /**
   * The same, but up to `lastSeq`, which need not be committed yet. For the log thread, whose commit is what makes it
   * visible (I4); nobody else may show it.
   */
  readUncommitted(
    stream: StreamHandle,
    afterSeq: number,
    lastSeq: number,
    bytesMax: number,
    run: FrameRun,
  ): number {
    return this.#read(stream, afterSeq, bytesMax, run, lastSeq);
  }

  #read(
    stream: StreamHandle,
    afterSeq: number,
    bytesMax: number,
    run: FrameRun,
    uncommittedSeq: number | null,
  ): number {
    const words = this.#rings.i32;
    const lockAt = i32At(stream.slot, layout.LOCK_OFFSET);
    for (let attempt = 1; ; attempt++) {
      lock(words, lockAt);
      const found = this.#locate(stream, afterSeq, bytesMax, run, uncommittedSeq);
      const last = attempt > TRIES_MAX;
      if (found === READ_OK && last) this.#copy(run);
      unlock(words, lockAt);
      if (found !== READ_OK || last) return found;
      this.#copy(run);
      if (this.#unmoved(stream.slot)) return READ_OK;
      this.discarded++;
    }
  }

  /** Under the lock: where the frames are, and how many of them. */
  #locate(
    stream: StreamHandle,
    afterSeq: number,
    bytesMax: number,
    run: FrameRun,
    uncommittedSeq: number | null,
  ): number {
    const rings = this.#rings;
    const slot = stream.slot;
    if (this.#look(stream) === READ_GONE) return READ_GONE;
    const newestSeq = uncommittedSeq ?? this.committedSeq;
    assert(afterSeq <= newestSeq, 'I4: a reader is never ahead of what is committed');
    if (afterSeq === newestSeq) return READ_CAUGHT_UP;
    if (afterSeq + 1 < this.floorSeq) return READ_OVERTAKEN;
    const lastSeq = lastWithin(rings, slot, afterSeq + 1, newestSeq, bytesMax);
    this.#position = positionOf(rings, slot, afterSeq + 1);
    this.#unit = rings.i32[i32At(slot, layout.DATA_UNIT_OFFSET)] as number;
    this.#order = rings.i32[i32At(slot, layout.DATA_ORDER_OFFSET)] as number;
    this.#version = Atomics.load(rings.i32, i32At(slot, layout.RING_VERSION_OFFSET));
    run.firstSeq = afterSeq + 1;
    run.lastSeq = lastSeq;
    run.reserve((positionOf(rings, slot, lastSeq + 1) - this.#position) | 0);
    return READ_OK;
  }

  #look(stream: StreamHandle): number {
    const rings = this.#rings;
    const slot = stream.slot;
    if (Atomics.load(rings.i32, i32At(slot, layout.GENERATION_OFFSET)) !== stream.generation)
      return READ_GONE;
    this.floorSeq = floorSeq(rings, slot);
    this.logFloorSeq = rings.f64[f64At(slot, layout.LOG_FLOOR_SEQ_OFFSET)] as number;
    this.committedSeq = committedSeq(rings, slot);
    this.headSeq = headSeq(rings, slot);
    this.closed = rings.i32[i32At(slot, layout.STATE_OFFSET)] === layout.STREAM_CLOSED;
    return READ_OK;
  }

  #copy(run: FrameRun): void {
    const ring = this.#rings.arena.bytes[segmentOf(this.#unit)] as Uint8Array;
    const base = byteOffsetOf(this.#unit);
    const mask = (1 << this.#order) - 1;
    const at = this.#position & mask;
    const length = run.frames.length;
    const first = Math.min(length, mask + 1 - at);
    run.frames.set(ring.subarray(base + at, base + at + first));
    if (first < length) run.frames.set(ring.subarray(base, base + length - first), first);
  }

  #unmoved(slot: number): boolean {
    const words = this.#rings.i32;
    const floor = Atomics.add(words, i32At(slot, layout.FLOOR_POSITION_OFFSET), 0);
    const version = Atomics.add(words, i32At(slot, layout.RING_VERSION_OFFSET), 0);
    return ((this.#position - floor) | 0) >= 0 && version === this.#version;
  }
}
