/**
 * Making room: rings grow, to powers of two, up to their limit rather than evict what retention would keep, and
 * evict within what they have when the arena is full. Called with the slot's lock held.
 *
 * Cold path: a ring that has found its size comes here only to evict.
 */

import { assert } from '../assert.js';
import { mayGo } from '../core/retention.js';
import type { Arena } from './arena.js';
import * as layout from './layout.js';
import {
  byteOffsetOf,
  committedSeq,
  dataCapacity,
  evictTo,
  floorSeq,
  hasReaders,
  headSeq,
  heldSeq,
  indexCapacity,
  keptBytes,
  positionOf,
  retentionFloor,
  segmentOf,
} from './ring-memory.js';
import type { Rings } from './rings.js';
import { f64At, i32At } from './rings.js';

export const ROOM_MADE = 0;
/** The arena has no block that would be large enough; nothing that retention keeps was evicted. */
export const ROOM_REFUSED = 1;
/** The run is larger than the ring may ever be. */
export const ROOM_IMPOSSIBLE = 2;

/** All the room there is holds events that are not committed yet; there is room when they are. */
export const ROOM_UNCOMMITTED = 3;
/** All the room there is holds events that named subscribers have to acknowledge (S6). */
export const ROOM_HELD = 4;

/** What the arena had not when it was asked: log2 of the bytes of a block; 0 = it had all. Reused. */
export interface Lack {
  order: number;
}

/** Makes room for `count` more frames of `bytes` in all. @param lack is set. */
export function makeRoom(rings: Rings, slot: number, bytes: number, count: number, lack: Lack): number {
  lack.order = 0;
  if (fits(rings, slot, bytes, count)) return ROOM_MADE;
  if (bytes > dataBytesMax(rings, slot)) return ROOM_IMPOSSIBLE;
  evictSuperfluous(rings, slot);
  if (fits(rings, slot, bytes, count)) return ROOM_MADE;

  // Both blocks before either ring: a publish that is refused holds no memory that it did not hold before.
  const data = allocateData(rings, slot, bytes, lack);
  const index = allocateIndex(rings, slot, count, lack);
  const dataBytes = data === null ? dataCapacity(rings, slot) : 2 ** data.order;
  const indexEvents = index === null ? indexCapacity(rings, slot) : 2 ** (index.order - 2);
  if (bytes > dataBytes || count > indexEvents) {
    for (const block of [data, index]) if (block !== null) rings.arena.release(block.unit, block.order);
    return ROOM_REFUSED;
  }
  if (data !== null) moveData(rings, slot, data);
  if (index !== null) moveIndex(rings, slot, index);
  return evictToFit(rings, slot, bytes, count);
}

/** Whether a stream could be given its first rings now. With a durable log room can be made (reclaim.ts). */
export function hasRoomForStream({ arena, durable }: Rings): boolean {
  if (durable) return true;
  const data = arena.allocate(layout.DATA_ORDER_MIN);
  const index = arena.allocate(layout.INDEX_ORDER_MIN);
  if (data >= 0) arena.release(data, layout.DATA_ORDER_MIN);
  if (index >= 0) arena.release(index, layout.INDEX_ORDER_MIN);
  return data >= 0 && index >= 0;
}

/** Gives both rings back; the stream keeps its positions. Only when nothing is kept. */
export function releaseRings(rings: Rings, slot: number): void {
  assert(
    floorSeq(rings, slot) === headSeq(rings, slot) + 1,
    'I5: rings go back only when they hold no event',
  );
  releaseBlock(rings, slot, layout.DATA_UNIT_OFFSET, layout.DATA_ORDER_OFFSET);
  releaseBlock(rings, slot, layout.INDEX_UNIT_OFFSET, layout.INDEX_ORDER_OFFSET);
}

function fits(rings: Rings, slot: number, bytes: number, count: number): boolean {
  return fitsData(rings, slot, bytes) && fitsIndex(rings, slot, count);
}

function fitsData(rings: Rings, slot: number, bytes: number): boolean {
  return keptBytes(rings, slot) + bytes <= dataCapacity(rings, slot);
}

function fitsIndex(rings: Rings, slot: number, count: number): boolean {
  return headSeq(rings, slot) - floorSeq(rings, slot) + 1 + count <= indexCapacity(rings, slot);
}

function dataBytesMax(rings: Rings, slot: number): number {
  return rings.f64[f64At(slot, layout.DATA_BYTES_MAX_OFFSET)] as number;
}

/**
 * Before a ring grows, what no limit asks to keep goes. Age is the coordinator's: it is not known here. Whoever reads
 * may not have seen the newest yet: it may not even have been told of them.
 */
function evictSuperfluous(rings: Rings, slot: number): void {
  const target = retentionFloor(rings, slot, mayGo, hasReaders(rings, slot));
  if (target > floorSeq(rings, slot)) evictTo(rings, slot, target);
}

/** Evicts nothing where that would take events that are not committed (I5) or are held (S6). */
function evictToFit(rings: Rings, slot: number, bytes: number, count: number): number {
  const head = headSeq(rings, slot);
  const headPosition = rings.i32[i32At(slot, layout.HEAD_POSITION_OFFSET)] as number;
  const keepBytes = dataCapacity(rings, slot) - bytes;
  let target = Math.max(floorSeq(rings, slot), head + 1 - (indexCapacity(rings, slot) - count));
  while (((headPosition - positionOf(rings, slot, target)) | 0) > keepBytes) target++;
  if (target > committedSeq(rings, slot) + 1) return ROOM_UNCOMMITTED;
  if (target > Math.max(heldSeq(rings, slot), floorSeq(rings, slot))) return ROOM_HELD;
  if (target > floorSeq(rings, slot)) evictTo(rings, slot, target);
  return ROOM_MADE;
}

interface Block {
  readonly unit: number;
  readonly order: number;
}

/** A larger block for the data, as near as there is to what would keep everything; null: none, or none is needed. */
function allocateData(rings: Rings, slot: number, bytes: number, lack: Lack): Block | null {
  if (fitsData(rings, slot, bytes)) return null;
  const wantedBytes = Math.min(keptBytes(rings, slot) + bytes, dataBytesMax(rings, slot));
  const oldOrder = rings.i32[i32At(slot, layout.DATA_ORDER_OFFSET)] as number;
  const least = Math.max(orderOf(bytes), oldOrder + 1, layout.DATA_ORDER_MIN);
  const wanted = Math.max(orderOf(wantedBytes), layout.DATA_ORDER_MIN);
  return allocateBlock(rings, slot, { wanted, least }, lack);
}

function allocateIndex(rings: Rings, slot: number, count: number, lack: Lack): Block | null {
  if (fitsIndex(rings, slot, count)) return null;
  const wantedEvents = headSeq(rings, slot) - floorSeq(rings, slot) + 1 + count;
  const oldOrder = rings.i32[i32At(slot, layout.INDEX_ORDER_OFFSET)] as number;
  const least = Math.max(orderOf(4 * count), oldOrder + 1, layout.INDEX_ORDER_MIN);
  const wanted = Math.max(orderOf(4 * wantedEvents), layout.INDEX_ORDER_MIN);
  return allocateBlock(rings, slot, { wanted, least }, lack);
}

/** The largest block that is free, of the orders from `wanted` down to `least`. */
function allocateBlock(
  { arena }: Rings,
  slot: number,
  orders: { wanted: number; least: number },
  lack: Lack,
): Block | null {
  const wanted = Math.min(orders.wanted, layout.RING_ORDER_MAX);
  for (let order = wanted; order >= orders.least; order--) {
    const unit = arena.allocate(order, slot);
    if (unit >= 0) return { unit, order };
  }
  if (orders.least <= wanted) lack.order = Math.max(lack.order, orders.least);
  return null;
}

function orderOf(bytes: number): number {
  return Math.ceil(Math.log2(bytes));
}

function moveData(rings: Rings, slot: number, { unit, order }: Block): void {
  const oldUnit = rings.i32[i32At(slot, layout.DATA_UNIT_OFFSET)] as number;
  const oldOrder = rings.i32[i32At(slot, layout.DATA_ORDER_OFFSET)] as number;
  const floor = Atomics.load(rings.i32, i32At(slot, layout.FLOOR_POSITION_OFFSET));
  if (oldOrder !== 0) copyRing(rings.arena, oldUnit, oldOrder, unit, order, floor, keptBytes(rings, slot));
  replaceBlock(rings, slot, layout.DATA_UNIT_OFFSET, layout.DATA_ORDER_OFFSET, unit, order);
}

function moveIndex(rings: Rings, slot: number, { unit, order }: Block): void {
  const words = rings.arena.words[segmentOf(unit)] as Int32Array;
  const base = byteOffsetOf(unit) / 4;
  const mask = 2 ** (order - 2) - 1;
  const head = headSeq(rings, slot);
  for (let seq = floorSeq(rings, slot); seq <= head; seq++) {
    words[base + (seq & mask)] = positionOf(rings, slot, seq);
  }
  replaceBlock(rings, slot, layout.INDEX_UNIT_OFFSET, layout.INDEX_ORDER_OFFSET, unit, order);
}

function replaceBlock(
  rings: Rings,
  slot: number,
  unitOffset: number,
  orderOffset: number,
  unit: number,
  order: number,
): void {
  const oldOrder = rings.i32[i32At(slot, orderOffset)] as number;
  if (oldOrder !== 0) releaseBlock(rings, slot, unitOffset, orderOffset);
  rings.i32[i32At(slot, unitOffset)] = unit;
  rings.i32[i32At(slot, orderOffset)] = order;
}

/** S3: readers that copied from the old place must learn of it before anybody can write there. */
function releaseBlock(rings: Rings, slot: number, unitOffset: number, orderOffset: number): void {
  const order = rings.i32[i32At(slot, orderOffset)] as number;
  if (order === 0) return;
  Atomics.add(rings.i32, i32At(slot, layout.RING_VERSION_OFFSET), 1);
  rings.arena.release(rings.i32[i32At(slot, unitOffset)] as number, order);
  rings.i32[i32At(slot, unitOffset)] = 0;
  rings.i32[i32At(slot, orderOffset)] = 0;
}

/** Copies [position, position + length) of a ring to the same positions of a larger one. */
function copyRing(
  arena: Arena,
  fromUnit: number,
  fromOrder: number,
  toUnit: number,
  toOrder: number,
  position: number,
  length: number,
): void {
  const from = arena.bytes[segmentOf(fromUnit)] as Uint8Array;
  const to = arena.bytes[segmentOf(toUnit)] as Uint8Array;
  const fromBase = byteOffsetOf(fromUnit);
  const toBase = byteOffsetOf(toUnit);
  const fromMask = 2 ** fromOrder - 1;
  const toMask = 2 ** toOrder - 1;
  for (let done = 0; done < length; ) {
    const fromAt = (position + done) & fromMask;
    const toAt = (position + done) & toMask;
    const step = Math.min(length - done, fromMask + 1 - fromAt, toMask + 1 - toAt);
    to.set(from.subarray(fromBase + fromAt, fromBase + fromAt + step), toBase + toAt);
    done += step;
  }
}
