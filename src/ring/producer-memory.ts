/**
 * What streams remember of their producers (contract 3.4): tables that are made, grow, forget and go back to the arena.
 * Cold path but for `tableOf`: a publish without a producer comes past none of it.
 */

import {
  DIGEST_BYTES,
  eachRecord,
  KEY,
  newestPlaceOf,
  PRODUCER,
  type ProducerRecords,
  RECORD_BYTES,
  RECORD_KINDS,
  type RecordKind,
  recordsOf,
} from '../core/producer-record.js';
import * as layout from './layout.js';
import { lock, unlock } from './mutex.js';
import { NONE, ProducerTable } from './producer-table.js';
import type { Lack } from './ring-growth.js';
import { committedSeq, headSeq } from './ring-memory.js';
import { i32At, type Rings, type StreamHandle } from './rings.js';

export const ENTRY_RESERVED = 0;
/** The stream, or all of them together, may remember no more. */
export const ENTRIES_FULL = 1;
/** The arena has no room for the table. */
export const ENTRIES_NO_MEMORY = 2;

/** How many a new entry makes forget: two, so that tables get smaller than they were. */
const FORGOTTEN_BY_ENTRY = 2;

const UNIT_OFFSETS = [layout.PRODUCER_UNIT_OFFSET, layout.KEY_UNIT_OFFSET] as const;
const ORDER_OFFSETS = [layout.PRODUCER_ORDER_OFFSET, layout.KEY_ORDER_OFFSET] as const;

/** A stream's table of one kind; null when there is none. Under the lock, as all below that takes a slot. */
export function tableOf(rings: Rings, slot: number, kind: RecordKind): ProducerTable | null {
  const order = rings.i32[i32At(slot, ORDER_OFFSETS[kind])] as number;
  if (order === 0) return null;
  const unit = rings.i32[i32At(slot, UNIT_OFFSETS[kind])] as number;
  return new ProducerTable(rings.arena, { unit, order }, kind);
}

/** Whether a stream has tables. No lock: the answer may be old when it arrives. */
export function hasTables(rings: Rings, slot: number): boolean {
  return RECORD_KINDS.some((kind) => Atomics.load(rings.i32, i32At(slot, ORDER_OFFSETS[kind])) !== 0);
}

/**
 * Makes sure that the table has an entry left.
 * @param lack is set with ENTRIES_NO_MEMORY.
 * @returns one of the constants above.
 */
export function reserveEntry(
  rings: Rings,
  slot: number,
  kind: RecordKind,
  { nowMs, lack }: { nowMs: number; lack: Lack },
): number {
  // With a log its thread forgets, which has to delete the records there as well.
  if (!rings.durable) forget(rings, slot, kind, { nowMs, countMax: FORGOTTEN_BY_ENTRY });
  const table = tableOf(rings, slot, kind);
  if ((table?.count ?? 0) >= rings.producers.countMax[kind]) return ENTRIES_FULL;
  if (table !== null && !table.isFull) return ENTRY_RESERVED;
  const order = table === null ? layout.TABLE_ORDER_MIN : table.order + 1;
  const reserved = replaceTable(rings, slot, kind, { order, bytesMax: rings.producers.bytesMax });
  if (reserved === ENTRIES_NO_MEMORY) lack.order = order;
  return reserved;
}

/** Whether an entry is old enough to be forgotten: after its time, and not before its commit. */
export function isForgettable(
  rings: Rings,
  slot: number,
  table: ProducerTable,
  at: { entry: number; nowMs: number },
): boolean {
  const isOld = table.usedAtMs(at.entry) + rings.producers.ttlMs[table.kind] <= at.nowMs;
  return isOld && table.newestPlace(at.entry) <= committedSeq(rings, slot);
}

/** Gives both tables back. */
export function releaseTables(rings: Rings, slot: number): void {
  for (const kind of RECORD_KINDS) releaseTable(rings, slot, kind);
}

/**
 * Forgets what is old enough, the oldest first, and a bounded number of it. Takes the lock.
 * @returns the digests of what was forgotten, back to back.
 */
export function forgetProducers(
  rings: Rings,
  stream: StreamHandle,
  kind: RecordKind,
  bounds: { nowMs: number; countMax: number },
): Uint8Array {
  return locked(rings, stream, () => forget(rings, stream.slot, kind, bounds)) ?? new Uint8Array(0);
}

/** Brings back what the log remembers, whatever the bounds say. Takes the lock. False: the arena is too small for it. */
export function restoreProducers(rings: Rings, stream: StreamHandle, records: ProducerRecords): boolean {
  const restored = locked(rings, stream, () =>
    RECORD_KINDS.every((kind) => restore(rings, stream.slot, kind, recordsOf(records, kind))),
  );
  return restored === true;
}

/** Where a stream stands, and the records that publishes after some seq left: one consistent view (P2). */
export interface ProducerChanges {
  readonly headSeq: number;
  /** By kind. */
  readonly records: readonly [Uint8Array, Uint8Array];
}

/** What changed with the events after `afterSeq`. Takes the lock. Null: the handle is old. */
export function changesSince(rings: Rings, stream: StreamHandle, afterSeq: number): ProducerChanges | null {
  return locked(rings, stream, () => ({
    headSeq: headSeq(rings, stream.slot),
    records: [
      recordsSince(rings, stream.slot, PRODUCER, afterSeq),
      recordsSince(rings, stream.slot, KEY, afterSeq),
    ],
  }));
}

function recordsSince(rings: Rings, slot: number, kind: RecordKind, afterSeq: number): Uint8Array {
  const table = tableOf(rings, slot, kind);
  if (table === null) return NO_RECORDS;
  let count = 0;
  for (let entry = table.newest; isAfter(table, entry, afterSeq); entry = table.olderThan(entry)) count++;
  const records = new Uint8Array(count * RECORD_BYTES[kind]);
  let at = 0;
  for (let entry = table.newest; at < records.length; entry = table.olderThan(entry)) {
    table.copyRecord(entry, records, at);
    at += RECORD_BYTES[kind];
  }
  return records;
}

function isAfter(table: ProducerTable, entry: number, afterSeq: number): boolean {
  return entry !== NONE && table.newestPlace(entry) > afterSeq;
}

const NO_RECORDS = new Uint8Array(0);

function forget(
  rings: Rings,
  slot: number,
  kind: RecordKind,
  { nowMs, countMax }: { nowMs: number; countMax: number },
): Uint8Array {
  const table = tableOf(rings, slot, kind);
  if (table === null) return NO_RECORDS;
  const digests: Uint8Array[] = [];
  const record = new Uint8Array(RECORD_BYTES[kind]);
  while (digests.length < countMax && table.count > 0) {
    const entry = table.oldest;
    if (!isForgettable(rings, slot, table, { entry, nowMs })) break;
    table.copyRecord(entry, record, 0);
    digests.push(record.slice(0, DIGEST_BYTES));
    table.remove(entry);
  }
  if (table.count === 0) releaseTable(rings, slot, kind);
  const forgotten = new Uint8Array(digests.length * DIGEST_BYTES);
  for (const [index, digest] of digests.entries()) forgotten.set(digest, index * DIGEST_BYTES);
  return forgotten;
}

function restore(rings: Rings, slot: number, kind: RecordKind, records: Uint8Array): boolean {
  if (records.length === 0) return true;
  const recordBytes = RECORD_BYTES[kind];
  const count = records.length / recordBytes;
  let order = layout.TABLE_ORDER_MIN;
  while (order <= layout.RING_ORDER_MAX && layout.tableCapacity(order, recordBytes) < count) order++;
  const made = replaceTable(rings, slot, kind, { order, bytesMax: Number.POSITIVE_INFINITY });
  const table = tableOf(rings, slot, kind);
  if (made !== ENTRY_RESERVED || table === null) return false;
  const inOrder = [...eachRecord(records, kind)].map((record) => ({
    record,
    at: newestPlaceOf(record, kind),
  }));
  inOrder.sort((a, b) => a.at - b.at);
  for (const { record } of inOrder) table.insertRecord(record);
  return true;
}

/** Gives a stream a larger table with the same entries, or its first one. */
function replaceTable(
  rings: Rings,
  slot: number,
  kind: RecordKind,
  { order, bytesMax }: { order: number; bytesMax: number },
): number {
  if (order > layout.RING_ORDER_MAX) return ENTRIES_FULL;
  const { unit, isOverBound } = rings.arena.allocateTable(order, bytesMax);
  if (unit < 0) return isOverBound ? ENTRIES_FULL : ENTRIES_NO_MEMORY;
  const grown = new ProducerTable(rings.arena, { unit, order }, kind);
  grown.format();
  const table = tableOf(rings, slot, kind);
  if (table !== null) {
    const record = new Uint8Array(RECORD_BYTES[kind]);
    for (let entry = table.oldest; entry !== NONE; entry = table.newerThan(entry)) {
      table.copyRecord(entry, record, 0);
      grown.insertRecord(record);
    }
  }
  releaseTable(rings, slot, kind);
  rings.i32[i32At(slot, UNIT_OFFSETS[kind])] = unit;
  Atomics.store(rings.i32, i32At(slot, ORDER_OFFSETS[kind]), order);
  return ENTRY_RESERVED;
}

function releaseTable(rings: Rings, slot: number, kind: RecordKind): void {
  const order = rings.i32[i32At(slot, ORDER_OFFSETS[kind])] as number;
  if (order === 0) return;
  rings.arena.releaseTable(rings.i32[i32At(slot, UNIT_OFFSETS[kind])] as number, order);
  rings.i32[i32At(slot, UNIT_OFFSETS[kind])] = 0;
  Atomics.store(rings.i32, i32At(slot, ORDER_OFFSETS[kind]), 0);
}

/** Null when the handle is old. */
function locked<T>(rings: Rings, stream: StreamHandle, section: () => T): T | null {
  const lockAt = i32At(stream.slot, layout.LOCK_OFFSET);
  lock(rings.i32, lockAt);
  const isCurrent =
    Atomics.load(rings.i32, i32At(stream.slot, layout.GENERATION_OFFSET)) === stream.generation;
  const result = isCurrent ? section() : null;
  unlock(rings.i32, lockAt);
  return result;
}
