/**
 * The inside of one stream's two rings: frames back to back, and an index of where each seq starts.
 * Every function here is called with the slot's lock held.
 *
 * Hot path: no allocation but for growth, no closures.
 */

import { assert } from '../assert.js';
import { mustGo } from '../core/retention.js';
import * as layout from './layout.js';
import type { Rings } from './rings.js';
import { f64At, i32At } from './rings.js';

/**
 * While an edge has not yet read the newest events, retention leaves at least this much behind the
 * head: a policy of "the last 5" must not cut live readers off in every burst. Lack of memory still does.
 */
export const LIVE_WINDOW_EVENTS = 1024;
export const LIVE_WINDOW_BYTES = 256 * 1024;

/** log2 of how far the floor can go before readers are told by the ring's version: half of what a difference can say. */
const FLOOR_STRIDE_ORDER = 30;
assert(layout.RING_ORDER_MAX <= FLOOR_STRIDE_ORDER, 'S5: one eviction cannot step over a whole stride');

const UNITS_PER_SEGMENT = layout.SEGMENT_BYTES_MAX / layout.UNIT_BYTES;

export function segmentOf(unit: number): number {
  return Math.floor(unit / UNITS_PER_SEGMENT);
}

export function byteOffsetOf(unit: number): number {
  return (unit % UNITS_PER_SEGMENT) * layout.UNIT_BYTES;
}

export function floorSeq(rings: Rings, slot: number): number {
  return rings.f64[f64At(slot, layout.FLOOR_SEQ_OFFSET)] as number;
}

export function headSeq(rings: Rings, slot: number): number {
  return rings.f64[f64At(slot, layout.HEAD_SEQ_OFFSET)] as number;
}

export function committedSeq(rings: Rings, slot: number): number {
  return rings.f64[f64At(slot, layout.COMMITTED_SEQ_OFFSET)] as number;
}

/** The lowest seq that named subscribers hold, or Infinity (S6). */
export function heldSeq(rings: Rings, slot: number): number {
  return rings.f64[f64At(slot, layout.HELD_SEQ_OFFSET)] as number;
}

/** Bytes of frames in the ring. */
export function keptBytes(rings: Rings, slot: number): number {
  const head = rings.i32[i32At(slot, layout.HEAD_POSITION_OFFSET)] as number;
  const floor = Atomics.load(rings.i32, i32At(slot, layout.FLOOR_POSITION_OFFSET));
  return (head - floor) | 0;
}

/** Bytes that the data ring can hold; 0 = no ring yet. At most 2^30 (S5), so a shift will do, on the hot path. */
export function dataCapacity(rings: Rings, slot: number): number {
  const order = rings.i32[i32At(slot, layout.DATA_ORDER_OFFSET)] as number;
  return order === 0 ? 0 : 1 << order;
}

/** Events that the index ring can hold; 0 = no ring yet. */
export function indexCapacity(rings: Rings, slot: number): number {
  const order = rings.i32[i32At(slot, layout.INDEX_ORDER_OFFSET)] as number;
  return order === 0 ? 0 : 1 << (order - 2);
}

/** Byte position of the first byte of `seq`, for floor <= seq <= head + 1. */
export function positionOf(rings: Rings, slot: number, seq: number): number {
  if (seq === headSeq(rings, slot) + 1) return rings.i32[i32At(slot, layout.HEAD_POSITION_OFFSET)] as number;
  const unit = rings.i32[i32At(slot, layout.INDEX_UNIT_OFFSET)] as number;
  const order = rings.i32[i32At(slot, layout.INDEX_ORDER_OFFSET)] as number;
  const words = rings.arena.words[segmentOf(unit)] as Int32Array;
  // `&` takes a seq modulo 2^32 whatever its size, and capacities are powers of two below that.
  return words[byteOffsetOf(unit) / 4 + (seq & ((1 << (order - 2)) - 1))] as number;
}

/**
 * The newest seq, from `seq` on, whose frame ends within `bytesMax` of the start of `seq`; at least `seq`
 * itself, so that one frame larger than the bound still goes out.
 */
export function lastWithin(
  rings: Rings,
  slot: number,
  seq: number,
  lastSeq: number,
  bytesMax: number,
): number {
  const start = positionOf(rings, slot, seq);
  if (((positionOf(rings, slot, lastSeq + 1) - start) | 0) <= bytesMax) return lastSeq;
  let low = seq;
  let high = lastSeq - 1;
  while (low < high) {
    const middle = low + Math.ceil((high - low) / 2);
    if (((positionOf(rings, slot, middle + 1) - start) | 0) <= bytesMax) low = middle;
    else high = middle - 1;
  }
  return low;
}

/** Moves the floor up to `seq`; what lies below may then be overwritten (S2). */
export function evictTo(rings: Rings, slot: number, seq: number): void {
  const floorAt = f64At(slot, layout.FLOOR_SEQ_OFFSET);
  const floor = rings.f64[floorAt] as number;
  assert(seq >= floor, 'I9: the floor never goes back');
  assert(seq <= committedSeq(rings, slot) + 1, 'I5: only committed events are evicted');
  const position = positionOf(rings, slot, seq);
  rings.f64[floorAt] = seq;
  const evictedAt = f64At(slot, layout.EVICTED_EVENTS_OFFSET);
  rings.f64[evictedAt] = (rings.f64[evictedAt] as number) + (seq - floor);
  const before = Atomics.load(rings.i32, i32At(slot, layout.FLOOR_POSITION_OFFSET));
  // S3: a floor that had gone half round the positions would look to a copying reader as if it had not passed it.
  if ((position ^ before) >>> FLOOR_STRIDE_ORDER !== 0) {
    Atomics.add(rings.i32, i32At(slot, layout.RING_VERSION_OFFSET), 1);
  }
  Atomics.exchange(rings.i32, i32At(slot, layout.FLOOR_POSITION_OFFSET), position);
}

/**
 * The floor that retention asks for. `rule` is mustGo, or mayGo where room is wanted; it applies to events and to
 * bytes, whole events only. `unseen`: an edge has yet to read the newest events.
 */
export function retentionFloor(
  rings: Rings,
  slot: number,
  rule: (kept: number, limit: number) => number,
  unseen: boolean,
): number {
  const floor = floorSeq(rings, slot);
  let eventsLimit = rings.f64[f64At(slot, layout.RETENTION_EVENTS_OFFSET)] as number;
  let bytesLimit = rings.f64[f64At(slot, layout.RETENTION_BYTES_OFFSET)] as number;
  if (unseen && eventsLimit > 0) eventsLimit = Math.max(eventsLimit, LIVE_WINDOW_EVENTS);
  if (unseen && bytesLimit > 0) bytesLimit = Math.max(bytesLimit, LIVE_WINDOW_BYTES);
  const events = rule(headSeq(rings, slot) - floor + 1, eventsLimit);
  const bytes = rule(keptBytes(rings, slot), bytesLimit);
  const target = Math.max(floor + events, bytes === 0 ? floor : lastStartBefore(rings, slot, bytes));
  return Math.min(target, committedSeq(rings, slot) + 1, heldSeq(rings, slot));
}

export const HELD_NOT = 0;
/** What named subscribers hold leaves no room for these events now. */
export const HELD_FULL = 1;
/** These events alone are more than may be held, so there will never be room for them. */
export const HELD_NEVER = 2;

/**
 * Whether `count` more events of `bytes` in all would have to take the place of what named subscribers hold (contract
 * 3.6): by the limits that were set, whoever reads at the moment.
 */
export function judgeHeld(rings: Rings, slot: number, bytes: number, count: number): number {
  if (rings.i32[i32At(slot, layout.LOG_HELD_OFFSET)] !== 0) return HELD_FULL;
  const held = heldSeq(rings, slot);
  if (held === Number.POSITIVE_INFINITY) return HELD_NOT;
  const eventsLimit = rings.f64[f64At(slot, layout.RETENTION_EVENTS_OFFSET)] as number;
  const bytesLimit = rings.f64[f64At(slot, layout.RETENTION_BYTES_OFFSET)] as number;
  if (mustGo(count, eventsLimit) > 0 || mustGo(bytes, bytesLimit) > 0) return HELD_NEVER;
  const head = headSeq(rings, slot);
  const from = Math.min(Math.max(held, floorSeq(rings, slot)), head + 1);
  const headPosition = rings.i32[i32At(slot, layout.HEAD_POSITION_OFFSET)] as number;
  const heldBytes = (headPosition - positionOf(rings, slot, from)) | 0;
  const isFull =
    mustGo(head - from + 1 + count, eventsLimit) > 0 || mustGo(heldBytes + bytes, bytesLimit) > 0;
  return isFull ? HELD_FULL : HELD_NOT;
}

/** Whether an edge has readers here. */
export function hasReaders(rings: Rings, slot: number): boolean {
  return Atomics.load(rings.i32, i32At(slot, layout.INTEREST_MASK_OFFSET)) !== 0;
}

/** Whether an edge has been told of events here that it has not read to the end. */
export function hasUnseen(rings: Rings, slot: number): boolean {
  return Atomics.load(rings.i32, i32At(slot, layout.DIRTY_MASK_OFFSET)) !== 0;
}

/** The newest seq that starts at most `bytes` above the floor, so that all from there on is kept. */
function lastStartBefore(rings: Rings, slot: number, bytes: number): number {
  const floorPosition = Atomics.load(rings.i32, i32At(slot, layout.FLOOR_POSITION_OFFSET));
  let low = floorSeq(rings, slot);
  let high = headSeq(rings, slot);
  while (low < high) {
    const middle = low + Math.ceil((high - low) / 2);
    if (((positionOf(rings, slot, middle) - floorPosition) | 0) <= bytes) low = middle;
    else high = middle - 1;
  }
  return low;
}
