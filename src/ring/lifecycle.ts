/**
 * A stream slot's life: opened, configured, trimmed, closed, taken away; and its positions, read in one
 * consistent piece (I8). Cold path.
 */

import { assert } from '../assert.js';
import { mustGo } from '../core/retention.js';
import * as layout from './layout.js';
import { lock, unlock } from './mutex.js';
import { releaseTables } from './producer-memory.js';
import { releaseRings } from './ring-growth.js';
import {
  committedSeq,
  evictTo,
  floorSeq,
  hasReaders,
  hasUnseen,
  headSeq,
  keptBytes,
  retentionFloor,
} from './ring-memory.js';
import type { Rings, StreamHandle } from './rings.js';
import { f64At, i32At } from './rings.js';

/** What a stream is at one moment. */
export interface StreamPositions {
  readonly epoch: string;
  /** Lowest seq in the ring; head + 1 when it is empty. */
  readonly floor: number;
  /** Lowest seq in the durable log, or null where there is no log. */
  readonly logFloor: number | null;
  readonly committed: number;
  readonly head: number;
  /** Bytes of frames kept. */
  readonly bytes: number;
  readonly closed: boolean;
  readonly evictedEvents: number;
  readonly lastActivityMs: number;
  readonly subscribers: number;
}

/** Gives a free slot to a new stream. Single writer: the coordinator. */
export function openStream(
  rings: Rings,
  slot: number,
  stream: {
    epoch: string;
    /** What the ring keeps at least; 0 = no such limit. */
    retention: { events: number; bytes: number };
    dataBytesMax: number;
    nowMs: number;
    /** Where a stream stands that the durable log brought back; a new one stands at 0, with floor 1. */
    logged?: { floor: number; head: number; closed: boolean };
  },
): StreamHandle {
  assert(stream.epoch.length <= layout.EPOCH_BYTES_MAX, 'layout: the epoch fits its field');
  lock(rings.i32, i32At(slot, layout.LOCK_OFFSET));
  assert(
    rings.i32[i32At(slot, layout.STATE_OFFSET)] === layout.STREAM_FREE,
    'S4: only a free slot is given away',
  );
  const generation = Atomics.add(rings.i32, i32At(slot, layout.GENERATION_OFFSET), 1) + 1;
  const head = stream.logged?.head ?? 0;
  rings.i32[i32At(slot, layout.STATE_OFFSET)] = stream.logged?.closed
    ? layout.STREAM_CLOSED
    : layout.STREAM_OPEN;
  rings.i32[i32At(slot, layout.HEAD_POSITION_OFFSET)] = 0;
  Atomics.exchange(rings.i32, i32At(slot, layout.FLOOR_POSITION_OFFSET), 0);
  rings.i32[i32At(slot, layout.EPOCH_LENGTH_OFFSET)] = stream.epoch.length;
  for (let i = 0; i < stream.epoch.length; i++) {
    rings.u8[slot * layout.STREAM_SLOT_BYTES + layout.EPOCH_OFFSET + i] = stream.epoch.charCodeAt(i);
  }
  rings.f64[f64At(slot, layout.FLOOR_SEQ_OFFSET)] = head + 1;
  rings.f64[f64At(slot, layout.COMMITTED_SEQ_OFFSET)] = head;
  rings.f64[f64At(slot, layout.HEAD_SEQ_OFFSET)] = head;
  rings.f64[f64At(slot, layout.LOG_FLOOR_SEQ_OFFSET)] = stream.logged?.floor ?? (rings.durable ? 1 : 0);
  rings.i32[i32At(slot, layout.LOG_HELD_OFFSET)] = 0;
  rings.f64[f64At(slot, layout.HELD_SEQ_OFFSET)] = Number.POSITIVE_INFINITY;
  rings.f64[f64At(slot, layout.LAST_ACTIVITY_MS_OFFSET)] = stream.nowMs;
  rings.f64[f64At(slot, layout.RETENTION_EVENTS_OFFSET)] = stream.retention.events;
  rings.f64[f64At(slot, layout.RETENTION_BYTES_OFFSET)] = stream.retention.bytes;
  rings.f64[f64At(slot, layout.DATA_BYTES_MAX_OFFSET)] = stream.dataBytesMax;
  rings.f64[f64At(slot, layout.EVICTED_EVENTS_OFFSET)] = 0;
  Atomics.store(rings.i32, i32At(slot, layout.SUBSCRIBERS_OFFSET), 0);
  unlock(rings.i32, i32At(slot, layout.LOCK_OFFSET));
  return { slot, generation, epoch: stream.epoch };
}

/**
 * Ends a stream: nothing more can be appended. With a durable log its readers hear of the end when that is committed,
 * from `closeLogged`. False when the handle is old.
 */
export function closeStream(rings: Rings, stream: StreamHandle, nowMs: number): boolean {
  return locked(rings, stream, () => {
    const stateAt = i32At(stream.slot, layout.STATE_OFFSET);
    if (rings.i32[stateAt] !== layout.STREAM_OPEN) return;
    rings.i32[stateAt] = rings.durable ? layout.STREAM_CLOSING : layout.STREAM_CLOSED;
    rings.f64[f64At(stream.slot, layout.LAST_ACTIVITY_MS_OFFSET)] = nowMs;
  });
}

/** The log has the end of a stream. Single writer: the log thread. */
export function closeLogged(rings: Rings, stream: StreamHandle): void {
  locked(rings, stream, () => {
    rings.i32[i32At(stream.slot, layout.STATE_OFFSET)] = layout.STREAM_CLOSED;
  });
}

/** Takes the slot away from its stream and gives the rings back. Single writer: the coordinator. */
export function removeStream(rings: Rings, stream: StreamHandle): boolean {
  return locked(rings, stream, () => {
    const slot = stream.slot;
    // S4 first: whoever takes the lock next must not take the empty rings for an empty stream.
    Atomics.add(rings.i32, i32At(slot, layout.GENERATION_OFFSET), 1);
    rings.i32[i32At(slot, layout.STATE_OFFSET)] = layout.STREAM_FREE;
    // What was not committed was never seen, and goes with the stream.
    rings.f64[f64At(slot, layout.COMMITTED_SEQ_OFFSET)] = headSeq(rings, slot);
    evictTo(rings, slot, headSeq(rings, slot) + 1);
    releaseRings(rings, slot);
    releaseTables(rings, slot);
  });
}

/** From `seq` on, named subscribers hold what is kept (S6). Without a durable log. Single writer: the coordinator. */
export function holdFrom(rings: Rings, stream: StreamHandle, seq: number): void {
  assert(!rings.durable, 'S6: with a durable log its thread says when publishers wait');
  locked(rings, stream, () => {
    rings.f64[f64At(stream.slot, layout.HELD_SEQ_OFFSET)] = seq;
  });
}

/**
 * The log has everything up to `seq`, and nothing below `logFloorSeq`: it may be seen and acknowledged from now on
 * (I4). `isHeld`: nothing more is appended until named subscribers have acknowledged some (contract 3.6).
 * Single writer: the log thread. False when the handle is old.
 */
export function commitStream(
  rings: Rings,
  stream: StreamHandle,
  at: { seq: number; logFloorSeq: number; isHeld?: boolean },
): boolean {
  return locked(rings, stream, () => {
    const slot = stream.slot;
    assert(at.seq >= committedSeq(rings, slot), 'I9: committed never goes back');
    assert(at.seq <= headSeq(rings, slot), 'S1: only what was appended is committed');
    rings.f64[f64At(slot, layout.COMMITTED_SEQ_OFFSET)] = at.seq;
    rings.f64[f64At(slot, layout.LOG_FLOOR_SEQ_OFFSET)] = at.logFloorSeq;
    rings.i32[i32At(slot, layout.LOG_HELD_OFFSET)] = at.isHeld === true ? 1 : 0;
    // What had to stay for its commit goes now, and not only with the next append.
    const target = retentionFloor(rings, slot, mustGo, hasReaders(rings, slot));
    if (target > floorSeq(rings, slot)) evictTo(rings, slot, target);
  });
}

/**
 * Leaves the ring empty at `seq`: what lies before is in the log, and was not put here. Single writer: who puts into
 * the ring what another machine has committed. False when the handle is old.
 */
export function skipTo(rings: Rings, stream: StreamHandle, seq: number): boolean {
  return locked(rings, stream, () => {
    const slot = stream.slot;
    assert(seq >= headSeq(rings, slot), 'I9: the head never goes back');
    rings.f64[f64At(slot, layout.COMMITTED_SEQ_OFFSET)] = headSeq(rings, slot);
    evictTo(rings, slot, headSeq(rings, slot) + 1);
    rings.f64[f64At(slot, layout.HEAD_SEQ_OFFSET)] = seq;
    rings.f64[f64At(slot, layout.COMMITTED_SEQ_OFFSET)] = seq;
    rings.f64[f64At(slot, layout.FLOOR_SEQ_OFFSET)] = seq + 1;
  });
}

/** Brings a stream within its retention by events and bytes. */
export function trimToRetention(rings: Rings, stream: StreamHandle): void {
  locked(rings, stream, () => {
    const target = retentionFloor(rings, stream.slot, mustGo, hasUnseen(rings, stream.slot));
    if (target > floorSeq(rings, stream.slot)) evictTo(rings, stream.slot, target);
  });
}

/** Evicts everything below `seq`, as age asks; a stream that keeps nothing gives its rings back. */
export function trimBelow(rings: Rings, stream: StreamHandle, seq: number): void {
  locked(rings, stream, () => {
    const slot = stream.slot;
    if (seq > floorSeq(rings, slot)) evictTo(rings, slot, Math.min(seq, committedSeq(rings, slot) + 1));
    if (floorSeq(rings, slot) === headSeq(rings, slot) + 1) releaseRings(rings, slot);
  });
}

/** One consistent view of a stream (I8), or null when the handle is old. */
export function readPositions(rings: Rings, stream: StreamHandle): StreamPositions | null {
  const slot = stream.slot;
  let positions: StreamPositions | null = null;
  locked(rings, stream, () => {
    positions = {
      epoch: stream.epoch,
      floor: floorSeq(rings, slot),
      logFloor: logFloor(rings, slot),
      committed: committedSeq(rings, slot),
      head: headSeq(rings, slot),
      bytes: keptBytes(rings, slot),
      closed: rings.i32[i32At(slot, layout.STATE_OFFSET)] === layout.STREAM_CLOSED,
      evictedEvents: rings.f64[f64At(slot, layout.EVICTED_EVENTS_OFFSET)] as number,
      lastActivityMs: rings.f64[f64At(slot, layout.LAST_ACTIVITY_MS_OFFSET)] as number,
      subscribers: Atomics.load(rings.i32, i32At(slot, layout.SUBSCRIBERS_OFFSET)),
    };
  });
  return positions;
}

/** Notes that a stream is in use, so that its time to live starts anew. */
export function touchStream(rings: Rings, stream: StreamHandle, nowMs: number): void {
  locked(rings, stream, () => {
    rings.f64[f64At(stream.slot, layout.LAST_ACTIVITY_MS_OFFSET)] = nowMs;
  });
}

/** Counts a stream's subscribers over all edges, those who wait for a page among them. */
export function addSubscribers(rings: Rings, stream: StreamHandle, amount: number): void {
  // Under the lock: a reader that leaves a deleted stream must not be taken off the one that has its slot by then (S4).
  locked(rings, stream, () => {
    Atomics.add(rings.i32, i32At(stream.slot, layout.SUBSCRIBERS_OFFSET), amount);
  });
}

/** How many read a stream now, over all edges. No lock: for the coordinator, whose handles are current (S4). */
export function subscribersOf(rings: Rings, stream: StreamHandle): number {
  return Atomics.load(rings.i32, i32At(stream.slot, layout.SUBSCRIBERS_OFFSET));
}

/** Whether the handle still names its stream. No lock: the answer may be old when it arrives. */
export function isCurrent(rings: Rings, stream: StreamHandle): boolean {
  return Atomics.load(rings.i32, i32At(stream.slot, layout.GENERATION_OFFSET)) === stream.generation;
}

function logFloor(rings: Rings, slot: number): number | null {
  return rings.durable ? (rings.f64[f64At(slot, layout.LOG_FLOOR_SEQ_OFFSET)] as number) : null;
}

function locked(rings: Rings, stream: StreamHandle, section: () => void): boolean {
  const lockAt = i32At(stream.slot, layout.LOCK_OFFSET);
  lock(rings.i32, lockAt);
  const current = isCurrent(rings, stream);
  if (current) section();
  unlock(rings.i32, lockAt);
  return current;
}
