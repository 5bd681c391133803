/**
 * Every byte of every shared buffer. Nobody else writes an offset.
 *
 * STREAM SLOT: one per stream, `STREAM_SLOT_BYTES` apart, in the `slots` buffer.
 * "lock" = plain access, only while holding the slot's lock; "atomic" = Atomics only.
 *
 *   offset size type field            writers            access
 *        0    4 i32  lock             everyone           atomic; mutex.ts
 *        4    4 i32  state            lock holder        lock; STREAM_FREE, _OPEN, _CLOSING, _CLOSED
 *        8    4 i32  dataUnit         lock holder        lock; first arena unit of the data ring
 *       12    4 i32  dataOrder        lock holder        lock; log2 of its bytes, 0 = no ring yet
 *       16    4 i32  indexUnit        lock holder        lock; first arena unit of the index ring
 *       20    4 i32  indexOrder       lock holder        lock; log2 of its bytes, 0 = no ring yet
 *       24    4 i32  headPosition     lock holder        lock; byte position after the newest frame
 *       28    4 i32  epochLength      coordinator        lock; bytes of `epoch` in use
 *       32    8 f64  floorSeq         lock holder        lock
 *       40    8 f64  committedSeq     lock holder        lock
 *       48    8 f64  headSeq          lock holder        lock
 *       56    8 f64  lastActivityMs   lock holder        lock; broker's time of the last append or change
 *       64    8 f64  retentionEvents  coordinator        lock
 *       72    8 f64  retentionBytes   coordinator        lock
 *       80    8 f64  dataBytesMax     coordinator        lock; the ring doubles up to this
 *       88    8 f64  evictedEvents    lock holder        lock
 *       96   16 u8[] epoch            coordinator        lock; ASCII
 *      112    8 f64  logFloorSeq      log thread         lock; lowest seq in the durable log, 0 = no log
 *      120    4 i32  logHeld          log thread         lock; 1 = the durable log is full of what named subscribers hold
 *      128    4 i32  generation       coordinator        atomic, stored under the lock; see S4
 *      256    4 i32  floorPosition    lock holder        atomic RMW; see S2
 *      260    4 i32  ringVersion      lock holder        atomic RMW; see S3
 *      264    4 i32  producerUnit     lock holder        lock; first arena unit of the table of producers
 *      268    4 i32  producerOrder    lock holder        lock, but for a look whether there is one: atomic; log2 of its bytes, 0 = none
 *      272    4 i32  keyUnit          lock holder        lock; the same of the table of keys
 *      276    4 i32  keyOrder         lock holder        as producerOrder
 *      280    8 f64  heldSeq          coordinator        lock; lowest seq that named subscribers hold, Infinity = none; see S6
 *      384    4 i32  interestMask     edges              atomic; bit e = edge e has readers here
 *      388    4 i32  dirtyMask        publishers, edges  atomic; bit e = edge e was told of news and has not read it all; bit 31: the log thread
 *      392    4 i32  subscribers      edges              atomic add
 *
 * S1  floorSeq <= committedSeq + 1, committedSeq <= headSeq; without a durable log committedSeq = headSeq, with one
 *     the log thread moves it (I4, I5, I9).
 * S2  Bytes of the data ring below `floorPosition` may be overwritten at any time, bytes from there to
 *     `headPosition` never. The evictor moves `floorPosition` by a read-modify-write *before* it
 *     overwrites; the reader confirms it by a read-modify-write *after* it has copied (I5).
 * S3  `ringVersion` changes by a read-modify-write before a ring's memory goes back to the arena, and before
 *     `floorPosition` passes a multiple of 2^30: so who finds both as they were knows that less than that was evicted
 *     meanwhile, and by S5 whether it was what they copied.
 * S4  `generation` changes each time that the slot is given to another stream, and when it is taken
 *     away, so that a thread with an old handle sees STREAM_GONE and not somebody else's events (I3).
 * S5  Positions are byte counts that wrap at 2^32; only differences have meaning, and capacities stay
 *     at or below 2^30, so that a signed difference is exact.
 *
 * S6  Without a durable log no limit of events, bytes or memory moves the floor above `heldSeq`; age does. With one it is
 *     always Infinity, and the log thread says by `logHeld` that publishers have to wait (contract 3.6).
 *
 * Fields with different writers stand two cache lines apart (adjacent-line prefetch).
 *
 * EDGE BLOCK: one per edge and a last one for the log thread, `edgeBlockBytes(queueCells)` apart, in the `wakes` buffer.
 *
 *        0    4 i32  wakeWord         anyone who wakes   atomic add + notify; the edge waits on it
 *      128    4 i32  queueTail        publishers         atomic add: claims a cell
 *      256    4 i32  queueHead        the edge           plain; nobody else reads it
 *      384  4*n i32[] queueCells      publishers, edge   atomic; 0 = empty, else slot + 1
 *
 * W1  A slot is at most once in an edge's queue: only who sets its bit in `dirtyMask` queues it, and the edge
 *     clears the bit only after it took the slot out and read the stream to the end, under the stream's lock, as
 *     an append sets it. So a queue of as many cells as there are slots never overflows, and no append goes unseen.
 *
 * PRODUCER TABLE: what a stream remembers of its producers, and another one of its keys (contract 3.4); a block of the
 * arena, all "lock" of the stream's slot. Entries are numbered from 1, 0 = none.
 *
 *        0    4 i32  count            entries in use
 *        4    4 i32  newest           entry of the latest publish
 *        8    4 i32  oldest           entry of the one that has not published for longest
 *       12    4 i32  free             first of the entries that were given back, linked by `older`
 *       16    4 i32  touched          entries that were ever used; those above hold anything
 *       32  4*b i32[] buckets         first entry of each chain; b = a 128th of the block's bytes
 *   32+4*b  n*e u8[] entries
 *
 * TABLE ENTRY: r bytes of a producer record (core/producer-record.ts), then
 *        r    4 i32  older            in the order of the latest publishes
 *      r+4    4 i32  newer
 *      r+8    4 i32  next             of the same bucket
 *     r+12    4      unused
 *
 * P1  From `newest` to `oldest` the places of the latest publishes go down: what changed since a seq is at the front,
 *     and what may be forgotten is at the back.
 * P2  The records are those of all publishes up to `headSeq` and of no other: an append writes both under the lock.
 *
 * ALLOCATOR: buddy free lists over the arena's units, in the `allocator` buffer. All "lock" but the lock.
 *
 *        0    4 i32  lock             everyone           atomic; mutex.ts
 *        4    4 i32  producerUnits    everyone           atomic add; units that producer tables occupy
 *        8    8 f64  usedBytes        lock holder        lock
 *       16    8 f64  refusals         lock holder        lock; allocations that found no room
 *       24    4 i32  hand             lock holder        lock; unit from which memory to take back is looked for
 *      128  4*32 i32[] freeHeads      lock holder        lock; by order in units, -1 = none
 *      256  4*u i32[] next            lock holder        lock; by unit: of a free block the next one, of a taken one its
 *                                                              owner's slot, -1 = nobody's
 *   256+4u  4*u i32[] previous        lock holder        lock; by unit
 *   256+8u    u u8[]  unitState       lock holder        lock; 0 inside, 0x80|order free, 0x40|order taken
 */

import { assert } from '../assert.js';

export const STREAM_SLOT_BYTES = 512;

export const LOCK_OFFSET = 0;
export const STATE_OFFSET = 4;
export const DATA_UNIT_OFFSET = 8;
export const DATA_ORDER_OFFSET = 12;
export const INDEX_UNIT_OFFSET = 16;
export const INDEX_ORDER_OFFSET = 20;
export const HEAD_POSITION_OFFSET = 24;
export const EPOCH_LENGTH_OFFSET = 28;
export const FLOOR_SEQ_OFFSET = 32;
export const COMMITTED_SEQ_OFFSET = 40;
export const HEAD_SEQ_OFFSET = 48;
export const LAST_ACTIVITY_MS_OFFSET = 56;
export const RETENTION_EVENTS_OFFSET = 64;
export const RETENTION_BYTES_OFFSET = 72;
export const DATA_BYTES_MAX_OFFSET = 80;
export const EVICTED_EVENTS_OFFSET = 88;
export const EPOCH_OFFSET = 96;
export const EPOCH_BYTES_MAX = 16;
export const LOG_FLOOR_SEQ_OFFSET = 112;
export const LOG_HELD_OFFSET = 120;
export const GENERATION_OFFSET = 128;
export const FLOOR_POSITION_OFFSET = 256;
export const RING_VERSION_OFFSET = 260;
export const PRODUCER_UNIT_OFFSET = 264;
export const PRODUCER_ORDER_OFFSET = 268;
export const KEY_UNIT_OFFSET = 272;
export const KEY_ORDER_OFFSET = 276;
export const HELD_SEQ_OFFSET = 280;
export const INTEREST_MASK_OFFSET = 384;
export const DIRTY_MASK_OFFSET = 388;
export const SUBSCRIBERS_OFFSET = 392;

export const STREAM_FREE = 0;
export const STREAM_OPEN = 1;
export const STREAM_CLOSED = 2;
/** Nothing is appended any more, and the log has not committed the end yet. */
export const STREAM_CLOSING = 3;

/** One bit of a 32-bit mask per edge; the last one is the log thread's. */
export const EDGES_MAX = 31;
export const LOG_BIT = 1 << EDGES_MAX;

export const WAKE_WORD_OFFSET = 0;
export const QUEUE_TAIL_OFFSET = 128;
export const QUEUE_HEAD_OFFSET = 256;
export const QUEUE_CELLS_OFFSET = 384;

/** Bytes of one edge's block, a multiple of 128 so that blocks do not share cache lines. */
export function edgeBlockBytes(queueCells: number): number {
  return Math.ceil((QUEUE_CELLS_OFFSET + 4 * queueCells) / 128) * 128;
}

/** Smallest piece of memory the arena hands out, bytes. */
export const UNIT_BYTES = 1024;
/** log2 of UNIT_BYTES. */
export const UNIT_ORDER = 10;
/** A ring lies within one segment: typed arrays over one buffer, and S5, both want a bound. */
export const SEGMENT_BYTES_MAX = 2 ** 30;
/** log2 of the largest ring (S5). */
export const RING_ORDER_MAX = 30;
/** A data ring starts with 4 KiB: a session that says little should cost little. */
export const DATA_ORDER_MIN = 12;
/** An index ring starts with 1 KiB, 256 events. */
export const INDEX_ORDER_MIN = 10;

export const TABLE_COUNT_OFFSET = 0;
export const TABLE_NEWEST_OFFSET = 4;
export const TABLE_OLDEST_OFFSET = 8;
export const TABLE_FREE_OFFSET = 12;
export const TABLE_TOUCHED_OFFSET = 16;
export const TABLE_BUCKETS_OFFSET = 32;
/** A table starts with 2 KiB. */
export const TABLE_ORDER_MIN = 11;
/** Of an entry, beside its record. */
export const ENTRY_LINK_BYTES = 16;

/** Chains of a table of 2^order bytes, a power of two. */
export function tableBuckets(order: number): number {
  return 2 ** (order - 7);
}

export function tableEntriesOffset(order: number): number {
  return TABLE_BUCKETS_OFFSET + 4 * tableBuckets(order);
}

/** Entries that a table of 2^order bytes has room for. */
export function tableCapacity(order: number, recordBytes: number): number {
  return Math.floor((2 ** order - tableEntriesOffset(order)) / (recordBytes + ENTRY_LINK_BYTES));
}

export const ALLOCATOR_LOCK_OFFSET = 0;
export const ALLOCATOR_PRODUCER_UNITS_OFFSET = 4;
export const ALLOCATOR_HAND_OFFSET = 24;
export const ALLOCATOR_USED_OFFSET = 8;
export const ALLOCATOR_REFUSALS_OFFSET = 16;
export const FREE_HEADS_OFFSET = 128;
export const FREE_HEADS_LENGTH = 32;
export const NEXT_OFFSET = 256;

export function previousOffset(units: number): number {
  return NEXT_OFFSET + 4 * units;
}

export function unitStateOffset(units: number): number {
  return NEXT_OFFSET + 8 * units;
}

export function allocatorBytes(units: number): number {
  return Math.ceil((NEXT_OFFSET + 9 * units) / 8) * 8;
}

// A seq is an f64 and a lock an i32: a shifted field would tear or trap, so the relations are proven at load.
for (const offset of [FLOOR_SEQ_OFFSET, COMMITTED_SEQ_OFFSET, HEAD_SEQ_OFFSET, LAST_ACTIVITY_MS_OFFSET]) {
  assert(offset % 8 === 0, 'layout: f64 fields of a slot are 8-byte aligned');
}
assert(
  EPOCH_OFFSET + EPOCH_BYTES_MAX <= GENERATION_OFFSET,
  'layout: the lock-guarded part ends before generation',
);
assert(FLOOR_POSITION_OFFSET - GENERATION_OFFSET >= 128, 'layout: writers stand two cache lines apart');
assert(INTEREST_MASK_OFFSET - FLOOR_POSITION_OFFSET >= 128, 'layout: writers stand two cache lines apart');
assert(
  STREAM_SLOT_BYTES >= SUBSCRIBERS_OFFSET + 4 && STREAM_SLOT_BYTES % 128 === 0,
  'layout: a slot holds its fields',
);
assert(
  FREE_HEADS_OFFSET + 4 * FREE_HEADS_LENGTH <= NEXT_OFFSET,
  'layout: free heads end before the next links',
);
