/**
 * One table of producer records in shared memory: entries in chains by digest, and in the order of their latest publish
 * (P1). Its bytes are those of layout.ts. Every function here is called with the lock of the stream's slot held.
 */

import { assert } from '../assert.js';
import type { ProducerPosition } from '../core/producer.js';
import {
  PLACE_BYTES,
  RECORD_BYTES,
  RECORD_EPOCH_OFFSET,
  RECORD_PLACES_OFFSET,
  RECORD_SEQ_OFFSET,
  RECORD_USED_AT_OFFSET,
  type RecordKind,
  WINDOW,
} from '../core/producer-record.js';
import type { Arena } from './arena.js';
import * as layout from './layout.js';
import { byteOffsetOf, segmentOf } from './ring-memory.js';

/** No entry. */
export const NONE = 0;

/** What is written into an entry. */
export interface RecordChange extends ProducerPosition {
  readonly usedAtMs: number;
  /** Where the publish stands in the stream. */
  readonly firstSeq: number;
  readonly lastSeq: number;
}

/** A view on a table; valid until it grows, or is given back. */
export class ProducerTable {
  readonly kind: RecordKind;
  readonly order: number;
  readonly #bytes: Uint8Array;
  readonly #words: Int32Array;
  readonly #doubles: Float64Array;
  /** Bytes of the segment before the table. */
  readonly #base: number;
  readonly #recordBytes: number;

  constructor(arena: Arena, at: { unit: number; order: number }, kind: RecordKind) {
    const segment = segmentOf(at.unit);
    this.kind = kind;
    this.order = at.order;
    this.#bytes = arena.bytes[segment] as Uint8Array;
    this.#words = arena.words[segment] as Int32Array;
    this.#doubles = arena.doubles[segment] as Float64Array;
    this.#base = byteOffsetOf(at.unit);
    this.#recordBytes = RECORD_BYTES[kind];
  }

  /** Makes the block a table without entries. */
  format(): void {
    this.#bytes.fill(0, this.#base, this.#base + layout.tableEntriesOffset(this.order));
  }

  get count(): number {
    return this.#header(layout.TABLE_COUNT_OFFSET);
  }

  get newest(): number {
    return this.#header(layout.TABLE_NEWEST_OFFSET);
  }

  get oldest(): number {
    return this.#header(layout.TABLE_OLDEST_OFFSET);
  }

  get isFull(): boolean {
    return this.count === layout.tableCapacity(this.order, this.#recordBytes);
  }

  /** The next entry towards the oldest. */
  olderThan(entry: number): number {
    return this.#words[this.#linkAt(entry, OLDER)] as number;
  }

  newerThan(entry: number): number {
    return this.#words[this.#linkAt(entry, NEWER)] as number;
  }

  find(digest: Int32Array): number {
    let entry = this.#words[this.#bucketAt(digest[0] as number)] as number;
    while (entry !== NONE && !this.#isOf(entry, digest))
      entry = this.#words[this.#linkAt(entry, NEXT)] as number;
    return entry;
  }

  /** The newest publish. */
  positionOf(entry: number): ProducerPosition {
    return {
      epoch: this.#double(entry, RECORD_EPOCH_OFFSET),
      seq: this.#double(entry, RECORD_SEQ_OFFSET),
    };
  }

  usedAtMs(entry: number): number {
    return this.#double(entry, RECORD_USED_AT_OFFSET);
  }

  /** Where publish `seq` of the current epoch stands in the stream; within the window. */
  placeOf(entry: number, seq: number): { firstSeq: number; lastSeq: number } {
    const at = this.#placeOffset(seq);
    return { firstSeq: this.#double(entry, at), lastSeq: this.#double(entry, at + 8) };
  }

  /** The last event of the newest publish. */
  newestPlace(entry: number): number {
    return this.placeOf(entry, this.#double(entry, RECORD_SEQ_OFFSET)).lastSeq;
  }

  /** A copy of the record's bytes. */
  copyRecord(entry: number, to: Uint8Array, at: number): void {
    const from = this.#entryOffset(entry);
    to.set(this.#bytes.subarray(from, from + this.#recordBytes), at);
  }

  /** Adds a record that was copied out, as the newest. Not when full. */
  insertRecord(record: Uint8Array): void {
    const entry = this.#take();
    this.#bytes.set(record, this.#entryOffset(entry));
    this.#chain(entry);
    this.#pushFront(entry);
  }

  /** Adds a producer, as the newest. Not when full. */
  insert(digest: Int32Array, change: RecordChange): void {
    const entry = this.#take();
    this.#words.set(digest, this.#entryOffset(entry) / 4);
    this.#write(entry, change);
    this.#chain(entry);
    this.#pushFront(entry);
  }

  /** Writes what a producer did last, and makes it the newest. */
  update(entry: number, change: RecordChange): void {
    this.#write(entry, change);
    if (entry === this.newest) return;
    this.#unlink(entry);
    this.#pushFront(entry);
  }

  remove(entry: number): void {
    this.#unchain(entry);
    this.#unlink(entry);
    this.#words[this.#linkAt(entry, OLDER)] = this.#header(layout.TABLE_FREE_OFFSET);
    this.#setHeader(layout.TABLE_FREE_OFFSET, entry);
    this.#setHeader(layout.TABLE_COUNT_OFFSET, this.count - 1);
  }

  /** An entry that is not in use, counted. */
  #take(): number {
    assert(!this.isFull, 'producers: room is made before an entry is taken');
    this.#setHeader(layout.TABLE_COUNT_OFFSET, this.count + 1);
    const free = this.#header(layout.TABLE_FREE_OFFSET);
    if (free !== NONE) {
      this.#setHeader(layout.TABLE_FREE_OFFSET, this.olderThan(free));
      return free;
    }
    const touched = this.#header(layout.TABLE_TOUCHED_OFFSET) + 1;
    this.#setHeader(layout.TABLE_TOUCHED_OFFSET, touched);
    return touched;
  }

  #write(entry: number, { epoch, seq, usedAtMs, firstSeq, lastSeq }: RecordChange): void {
    const at = this.#entryOffset(entry);
    this.#doubles[(at + RECORD_EPOCH_OFFSET) / 8] = epoch;
    this.#doubles[(at + RECORD_SEQ_OFFSET) / 8] = seq;
    this.#doubles[(at + RECORD_USED_AT_OFFSET) / 8] = usedAtMs;
    const place = (at + this.#placeOffset(seq)) / 8;
    this.#doubles[place] = firstSeq;
    this.#doubles[place + 1] = lastSeq;
  }

  #chain(entry: number): void {
    const bucketAt = this.#bucketAt(this.#words[this.#entryOffset(entry) / 4] as number);
    this.#words[this.#linkAt(entry, NEXT)] = this.#words[bucketAt] as number;
    this.#words[bucketAt] = entry;
  }

  #unchain(entry: number): void {
    let at = this.#bucketAt(this.#words[this.#entryOffset(entry) / 4] as number);
    while (this.#words[at] !== entry) at = this.#linkAt(this.#words[at] as number, NEXT);
    this.#words[at] = this.#words[this.#linkAt(entry, NEXT)] as number;
  }

  #pushFront(entry: number): void {
    const second = this.newest;
    assert(
      second === NONE || this.newestPlace(second) <= this.newestPlace(entry),
      'P1: the newest is in front',
    );
    this.#words[this.#linkAt(entry, OLDER)] = second;
    this.#words[this.#linkAt(entry, NEWER)] = NONE;
    if (second === NONE) this.#setHeader(layout.TABLE_OLDEST_OFFSET, entry);
    else this.#words[this.#linkAt(second, NEWER)] = entry;
    this.#setHeader(layout.TABLE_NEWEST_OFFSET, entry);
  }

  #unlink(entry: number): void {
    const older = this.olderThan(entry);
    const newer = this.newerThan(entry);
    if (older === NONE) this.#setHeader(layout.TABLE_OLDEST_OFFSET, newer);
    else this.#words[this.#linkAt(older, NEWER)] = newer;
    if (newer === NONE) this.#setHeader(layout.TABLE_NEWEST_OFFSET, older);
    else this.#words[this.#linkAt(newer, OLDER)] = older;
  }

  #isOf(entry: number, digest: Int32Array): boolean {
    const at = this.#entryOffset(entry) / 4;
    for (let i = 0; i < digest.length; i++) if (this.#words[at + i] !== digest[i]) return false;
    return true;
  }

  #header(offset: number): number {
    return this.#words[(this.#base + offset) / 4] as number;
  }

  #setHeader(offset: number, value: number): void {
    this.#words[(this.#base + offset) / 4] = value;
  }

  /** Index of the word with the first entry of a chain. Digests are spread evenly, so their first word will do. */
  #bucketAt(word: number): number {
    const bucket = word & (layout.tableBuckets(this.order) - 1);
    return (this.#base + layout.TABLE_BUCKETS_OFFSET) / 4 + bucket;
  }

  #entryOffset(entry: number): number {
    const entryBytes = this.#recordBytes + layout.ENTRY_LINK_BYTES;
    return this.#base + layout.tableEntriesOffset(this.order) + (entry - 1) * entryBytes;
  }

  #linkAt(entry: number, link: number): number {
    return (this.#entryOffset(entry) + this.#recordBytes) / 4 + link;
  }

  #double(entry: number, offset: number): number {
    return this.#doubles[(this.#entryOffset(entry) + offset) / 8] as number;
  }

  #placeOffset(seq: number): number {
    return RECORD_PLACES_OFFSET + PLACE_BYTES * (seq % WINDOW[this.kind]);
  }
}

/** The links of an entry, in words behind its record. */
const OLDER = 0;
const NEWER = 1;
const NEXT = 2;
