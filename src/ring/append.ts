/**
 * Appends a framed batch to a stream: all of it with consecutive seqs, or none (contract 3.1).
 *
 * Hot path: one lock, one pass; no allocation, no closures, no exceptions but for broken invariants.
 */

import { assert } from '../assert.js';
import {
  expectedSeq,
  PUBLISH_DUPLICATE,
  PUBLISH_FENCED,
  PUBLISH_FORGOTTEN,
  PUBLISH_GAP,
} from '../core/producer.js';
import { mustGo } from '../core/retention.js';
import type { FrameBatch } from '../core/sse-frame.js';
import { IdLine } from '../core/sse-frame.js';
import { ClaimJudge, type ProducerClaim } from './claim-judge.js';
import * as layout from './layout.js';
import { lock, unlock } from './mutex.js';
import { ENTRIES_FULL, ENTRIES_NO_MEMORY } from './producer-memory.js';
import { reclaim } from './reclaim.js';
import {
  type Lack,
  makeRoom,
  ROOM_HELD,
  ROOM_IMPOSSIBLE,
  ROOM_REFUSED,
  ROOM_UNCOMMITTED,
} from './ring-growth.js';
import {
  byteOffsetOf,
  dataCapacity,
  evictTo,
  floorSeq,
  HELD_FULL,
  HELD_NOT,
  hasReaders,
  headSeq,
  indexCapacity,
  judgeHeld,
  retentionFloor,
  segmentOf,
} from './ring-memory.js';
import type { Rings, StreamHandle } from './rings.js';
import { f64At, i32At } from './rings.js';

export const APPENDED = 0;
/** The handle is old: the stream was deleted. Resolve the name again. */
export const APPEND_GONE = 1;
/** The stream was closed; `lastSeq` is its end. */
export const APPEND_CLOSED = 2;
/** The head is not where the publisher said; `lastSeq` is the head. */
export const APPEND_HEAD_MISMATCH = 3;
/** The arena has no room for this stream. */
export const APPEND_NO_MEMORY = 4;
/** The batch is larger than this stream's ring may ever be. */
export const APPEND_TOO_LARGE = 5;
/** The stream's memory is full of events that are not committed yet. Try again soon. */
export const APPEND_UNCOMMITTED = 6;
/** The producer's publish was appended before, as `firstSeq` to `lastSeq`; perhaps it is not committed yet. */
export const APPEND_DUPLICATE = 7;
/** It was appended before, too long ago to say where. */
export const APPEND_FORGOTTEN = 8;
/** Others of the producer have to come first: `expectedSeq`. */
export const APPEND_PRODUCER_GAP = 9;
/** A newer epoch of the producer has begun: `newestEpoch`. */
export const APPEND_FENCED = 10;
/** As many producers, or keys, are remembered as there may be. */
export const APPEND_TOO_MANY_PRODUCERS = 11;
/** Named subscribers have yet to acknowledge what would have to go (contract 3.6). */
export const APPEND_HELD = 12;

/** A ring that was not appended to for so long gives way to one that would like to grow. */
const IDLE_MS = 1000;
/** After no ring was found that idles, none is looked for during this. */
const IDLE_SEARCH_MS = 100;
/** What was freed may be gone again when it is asked for; and a stream needs two blocks. */
const RECLAIMS_MAX = 4;

/** `ifHeadSeq` of a publisher that does not care. */
export const ANY_HEAD = -1;

/** More about the last append. */
export interface AppendDetails {
  /** Seqs of the batch after APPENDED and APPEND_DUPLICATE; `lastSeq` is the head after APPEND_CLOSED and APPEND_HEAD_MISMATCH. */
  readonly firstSeq: number;
  readonly lastSeq: number;
  /** The seq that the producer's next publish has, after APPEND_PRODUCER_GAP. */
  readonly expectedSeq: number;
  /** The producer's newest epoch, after APPEND_FENCED. */
  readonly newestEpoch: number;
}

/** Frames of a thread's publishers on their way into the rings. Single user: one edge. */
export class Appender implements AppendDetails {
  firstSeq = 0;
  lastSeq = 0;
  expectedSeq = 0;
  newestEpoch = 0;
  /** Bits of those who have to be told of the batch: pass it to `Wakes.tell` after APPENDED. */
  toTell = 0;
  /** Rings of other streams that were given back because one here needed their memory. */
  reclaimed = 0;

  readonly #rings: Rings;
  readonly #judge: ClaimJudge;
  readonly #idLine = new IdLine();
  readonly #lack: Lack = { order: 0 };
  #idleSearchedMs = 0;

  constructor(rings: Rings) {
    this.#rings = rings;
    this.#judge = new ClaimJudge(rings);
  }

  /**
   * @param nowMs the broker's time, kept as the stream's last activity.
   * @param ifHeadSeq seq that the head must have (contract 3.5), or ANY_HEAD.
   * @param claim whose publish it is (contract 3.4), or null.
   * @returns one of the constants above.
   */
  append(
    stream: StreamHandle,
    batch: FrameBatch,
    nowMs: number,
    ifHeadSeq: number,
    claim: ProducerClaim | null = null,
  ): number {
    assert(batch.count > 0, 'append: a batch holds at least one event');
    const outcome = this.#appendOnce(stream, batch, nowMs, ifHeadSeq, claim);
    if (this.#lack.order === 0 || !this.#rings.durable) return outcome;
    const again = () => this.#appendOnce(stream, batch, nowMs, ifHeadSeq, claim);
    return this.#appendWithMore(outcome, again, nowMs);
  }

  #appendOnce(
    stream: StreamHandle,
    batch: FrameBatch,
    nowMs: number,
    ifHeadSeq: number,
    claim: ProducerClaim | null,
  ): number {
    const rings = this.#rings;
    const slot = stream.slot;
    this.#lack.order = 0;
    lock(rings.i32, i32At(slot, layout.LOCK_OFFSET));
    const outcome = this.#appendLocked(stream, batch, nowMs, ifHeadSeq, claim);
    unlock(rings.i32, i32At(slot, layout.LOCK_OFFSET));
    return outcome;
  }

  /**
   * Cold path: the arena had no block. A refused append takes memory from others, those that idle first, and is tried
   * again; one that went well although its ring could not grow has idle ones give way for the next.
   */
  #appendWithMore(first: number, append: () => number, nowMs: number): number {
    const { order } = this.#lack;
    if (first !== APPEND_NO_MEMORY && first !== APPEND_UNCOMMITTED) {
      this.#reclaimIdle(order, nowMs);
      return first;
    }
    let outcome = first;
    for (let tries = 0; tries < RECLAIMS_MAX && this.#lack.order > 0; tries++) {
      const { order } = this.#lack;
      if (!this.#reclaimIdle(order, nowMs) && !this.#reclaim(order, Number.POSITIVE_INFINITY)) break;
      outcome = append();
      if (outcome !== APPEND_NO_MEMORY && outcome !== APPEND_UNCOMMITTED) break;
    }
    return outcome;
  }

  #reclaimIdle(order: number, nowMs: number): boolean {
    if (Math.abs(nowMs - this.#idleSearchedMs) < IDLE_SEARCH_MS) return false;
    if (this.#reclaim(order, nowMs - IDLE_MS)) return true;
    this.#idleSearchedMs = nowMs;
    return false;
  }

  #reclaim(order: number, idleSinceMs: number): boolean {
    const streams = reclaim(this.#rings, { order, idleSinceMs });
    this.reclaimed += streams;
    return streams > 0;
  }

  #appendLocked(
    stream: StreamHandle,
    batch: FrameBatch,
    nowMs: number,
    ifHeadSeq: number,
    claim: ProducerClaim | null,
  ): number {
    const rings = this.#rings;
    const slot = stream.slot;
    if (Atomics.load(rings.i32, i32At(slot, layout.GENERATION_OFFSET)) !== stream.generation)
      return APPEND_GONE;
    const head = headSeq(rings, slot);
    this.lastSeq = head;
    // First of all: a repeat is answered as it was, although the stream has moved on or was closed since.
    const judged = claim === null ? APPENDED : this.#judgeClaim(slot, claim, nowMs);
    if (judged !== APPENDED) return judged;
    if (rings.i32[i32At(slot, layout.STATE_OFFSET)] !== layout.STREAM_OPEN) return APPEND_CLOSED;
    if (ifHeadSeq !== ANY_HEAD && ifHeadSeq !== head) return APPEND_HEAD_MISMATCH;
    const bytes = batch.size + idLinesBytes(stream.epoch.length, head + 1, batch.count);
    const held = judgeHeld(rings, slot, bytes, batch.count);
    if (held !== HELD_NOT) return held === HELD_FULL ? APPEND_HELD : APPEND_TOO_LARGE;
    const reserved = claim === null ? APPENDED : this.#reserve(slot, claim, nowMs);
    if (reserved !== APPENDED) return reserved;

    const room = makeRoom(rings, slot, bytes, batch.count, this.#lack);
    if (room === ROOM_REFUSED) return APPEND_NO_MEMORY;
    if (room === ROOM_IMPOSSIBLE) return APPEND_TOO_LARGE;
    if (room === ROOM_UNCOMMITTED) return APPEND_UNCOMMITTED;
    if (room === ROOM_HELD) return APPEND_HELD;

    this.#write(stream, batch, head + 1, bytes);
    rings.f64[f64At(slot, layout.HEAD_SEQ_OFFSET)] = head + batch.count;
    if (!rings.durable) rings.f64[f64At(slot, layout.COMMITTED_SEQ_OFFSET)] = head + batch.count;
    rings.f64[f64At(slot, layout.LAST_ACTIVITY_MS_OFFSET)] = nowMs;
    this.firstSeq = head + 1;
    this.lastSeq = head + batch.count;
    if (claim !== null) this.#judge.record(claim, { firstSeq: this.firstSeq, lastSeq: this.lastSeq, nowMs });

    const target = retentionFloor(rings, slot, mustGo, hasReaders(rings, slot));
    if (target > floorSeq(rings, slot)) evictTo(rings, slot, target);
    this.#mark(slot);
    return APPENDED;
  }

  #judgeClaim(slot: number, claim: ProducerClaim, nowMs: number): number {
    const judge = this.#judge;
    switch (judge.judge(slot, claim, nowMs)) {
      case PUBLISH_DUPLICATE:
        this.firstSeq = judge.firstSeq;
        this.lastSeq = judge.lastSeq;
        return APPEND_DUPLICATE;
      case PUBLISH_FORGOTTEN:
        return APPEND_FORGOTTEN;
      case PUBLISH_GAP:
        this.expectedSeq = expectedSeq(claim, judge.newest);
        return APPEND_PRODUCER_GAP;
      case PUBLISH_FENCED:
        this.newestEpoch = judge.newest?.epoch ?? 0;
        return APPEND_FENCED;
      default:
        return APPENDED;
    }
  }

  /** Room for the producer, before room for the events: where there is none, nothing was evicted. */
  #reserve(slot: number, claim: ProducerClaim, nowMs: number): number {
    switch (this.#judge.reserve(slot, claim, nowMs, this.#lack)) {
      case ENTRIES_FULL:
        return APPEND_TOO_MANY_PRODUCERS;
      case ENTRIES_NO_MEMORY:
        return APPEND_NO_MEMORY;
      default:
        return APPENDED;
    }
  }

  /**
   * Marks those who are to be told: the log thread, or without one the edges with readers. Under the lock, so that
   * nobody trims what they have not read in between.
   */
  #mark(slot: number): void {
    const words = this.#rings.i32;
    const told = this.#rings.durable
      ? layout.LOG_BIT
      : Atomics.load(words, i32At(slot, layout.INTEREST_MASK_OFFSET));
    const before = told === 0 ? 0 : Atomics.or(words, i32At(slot, layout.DIRTY_MASK_OFFSET), told);
    this.toTell = told & ~before;
  }

  #write(stream: StreamHandle, batch: FrameBatch, firstSeq: number, bytes: number): void {
    const rings = this.#rings;
    const slot = stream.slot;
    const dataUnit = rings.i32[i32At(slot, layout.DATA_UNIT_OFFSET)] as number;
    const data = rings.arena.bytes[segmentOf(dataUnit)] as Uint8Array;
    const dataBase = byteOffsetOf(dataUnit);
    const dataMask = dataCapacity(rings, slot) - 1;
    const indexUnit = rings.i32[i32At(slot, layout.INDEX_UNIT_OFFSET)] as number;
    const index = rings.arena.words[segmentOf(indexUnit)] as Int32Array;
    const indexBase = byteOffsetOf(indexUnit) / 4;
    const indexMask = indexCapacity(rings, slot) - 1;

    const idLine = this.#idLine;
    const parts = batch.bytes;
    const ends = batch.ends;
    const startPosition = rings.i32[i32At(slot, layout.HEAD_POSITION_OFFSET)] as number;
    let position = startPosition;
    let partStart = 0;
    idLine.start(stream.epoch, firstSeq);
    for (let i = 0; i < batch.count; i++) {
      const partEnd = ends[i] as number;
      index[indexBase + ((firstSeq + i) & indexMask)] = position;
      copyIn(data, dataBase, dataMask, position, idLine.bytes, 0, idLine.length);
      position = (position + idLine.length) | 0;
      copyIn(data, dataBase, dataMask, position, parts, partStart, partEnd);
      position = (position + (partEnd - partStart)) | 0;
      partStart = partEnd;
      idLine.next();
    }
    assert(((position - startPosition) | 0) === bytes, 'append: a batch takes the room that was made for it');
    rings.i32[i32At(slot, layout.HEAD_POSITION_OFFSET)] = position;
  }
}

/** Below this a loop beats the call into the engine's copy. */
const LOOP_COPY_BYTES_MAX = 64;

function copyIn(
  ring: Uint8Array,
  base: number,
  mask: number,
  position: number,
  from: Uint8Array,
  start: number,
  end: number,
): void {
  const at = position & mask;
  const length = end - start;
  if (at + length > mask + 1) {
    const first = mask + 1 - at;
    ring.set(from.subarray(start, start + first), base + at);
    ring.set(from.subarray(start + first, end), base);
  } else if (length <= LOOP_COPY_BYTES_MAX) {
    for (let i = 0, to = base + at; i < length; i++) ring[to + i] = from[start + i] as number;
  } else {
    ring.set(from.subarray(start, end), base + at);
  }
}

/** Bytes of `count` lines `id: <epoch>.<seq>\n` from `firstSeq` on. */
export function idLinesBytes(epochLength: number, firstSeq: number, count: number): number {
  let digits = 0;
  let seq = firstSeq;
  let left = count;
  let width = 1;
  let widerFrom = 10;
  for (; widerFrom <= firstSeq; widerFrom *= 10) width++;
  for (; left > 0; widerFrom *= 10, width++) {
    const sameWidth = Math.min(left, widerFrom - seq);
    digits += sameWidth * width;
    seq += sameWidth;
    left -= sameWidth;
  }
  return count * ('id: '.length + epochLength + '.\n'.length) + digits;
}
