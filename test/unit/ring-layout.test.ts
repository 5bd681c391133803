import assert from 'node:assert/strict';
import { test } from 'node:test';
import { RECORD_BYTES } from '#gapless/core/producer-record.js';
import { FrameBatch } from '#gapless/core/sse-frame.js';
import { Appender } from '#gapless/ring/append.js';
import * as layout from '#gapless/ring/layout.js';
import { addSubscribers, closeStream, removeStream } from '#gapless/ring/lifecycle.js';
import { createRings, Rings } from '#gapless/ring/rings.js';
import { createWakes, Wakes } from '#gapless/ring/wake-queue.js';
import { NOW_MS, openRingStream } from './ring-open.js';

interface Field {
  readonly constant: keyof typeof layout;
  readonly offset: number;
  readonly size: number;
  readonly type: 'i32' | 'f64' | 'u8[]' | 'i32[]';
  /** Who writes: fields of different groups must not share a pair of cache lines. */
  readonly group: string;
}

// The byte tables a second time, as literals: a constant that moves has to move here too.
const SLOT: readonly Field[] = [
  { constant: 'LOCK_OFFSET', offset: 0, size: 4, type: 'i32', group: 'lock holder' },
  { constant: 'STATE_OFFSET', offset: 4, size: 4, type: 'i32', group: 'lock holder' },
  { constant: 'DATA_UNIT_OFFSET', offset: 8, size: 4, type: 'i32', group: 'lock holder' },
  { constant: 'DATA_ORDER_OFFSET', offset: 12, size: 4, type: 'i32', group: 'lock holder' },
  { constant: 'INDEX_UNIT_OFFSET', offset: 16, size: 4, type: 'i32', group: 'lock holder' },
  { constant: 'INDEX_ORDER_OFFSET', offset: 20, size: 4, type: 'i32', group: 'lock holder' },
  { constant: 'HEAD_POSITION_OFFSET', offset: 24, size: 4, type: 'i32', group: 'lock holder' },
  { constant: 'EPOCH_LENGTH_OFFSET', offset: 28, size: 4, type: 'i32', group: 'lock holder' },
  { constant: 'FLOOR_SEQ_OFFSET', offset: 32, size: 8, type: 'f64', group: 'lock holder' },
  { constant: 'COMMITTED_SEQ_OFFSET', offset: 40, size: 8, type: 'f64', group: 'lock holder' },
  { constant: 'HEAD_SEQ_OFFSET', offset: 48, size: 8, type: 'f64', group: 'lock holder' },
  { constant: 'LAST_ACTIVITY_MS_OFFSET', offset: 56, size: 8, type: 'f64', group: 'lock holder' },
  { constant: 'RETENTION_EVENTS_OFFSET', offset: 64, size: 8, type: 'f64', group: 'lock holder' },
  { constant: 'RETENTION_BYTES_OFFSET', offset: 72, size: 8, type: 'f64', group: 'lock holder' },
  { constant: 'DATA_BYTES_MAX_OFFSET', offset: 80, size: 8, type: 'f64', group: 'lock holder' },
  { constant: 'EVICTED_EVENTS_OFFSET', offset: 88, size: 8, type: 'f64', group: 'lock holder' },
  { constant: 'EPOCH_OFFSET', offset: 96, size: 16, type: 'u8[]', group: 'lock holder' },
  { constant: 'LOG_FLOOR_SEQ_OFFSET', offset: 112, size: 8, type: 'f64', group: 'lock holder' },
  { constant: 'LOG_HELD_OFFSET', offset: 120, size: 4, type: 'i32', group: 'lock holder' },
  { constant: 'GENERATION_OFFSET', offset: 128, size: 4, type: 'i32', group: 'coordinator' },
  { constant: 'FLOOR_POSITION_OFFSET', offset: 256, size: 4, type: 'i32', group: 'evictor' },
  { constant: 'RING_VERSION_OFFSET', offset: 260, size: 4, type: 'i32', group: 'evictor' },
  { constant: 'PRODUCER_UNIT_OFFSET', offset: 264, size: 4, type: 'i32', group: 'evictor' },
  { constant: 'PRODUCER_ORDER_OFFSET', offset: 268, size: 4, type: 'i32', group: 'evictor' },
  { constant: 'KEY_UNIT_OFFSET', offset: 272, size: 4, type: 'i32', group: 'evictor' },
  { constant: 'KEY_ORDER_OFFSET', offset: 276, size: 4, type: 'i32', group: 'evictor' },
  { constant: 'HELD_SEQ_OFFSET', offset: 280, size: 8, type: 'f64', group: 'evictor' },
  { constant: 'INTEREST_MASK_OFFSET', offset: 384, size: 4, type: 'i32', group: 'edges' },
  { constant: 'DIRTY_MASK_OFFSET', offset: 388, size: 4, type: 'i32', group: 'edges' },
  { constant: 'SUBSCRIBERS_OFFSET', offset: 392, size: 4, type: 'i32', group: 'edges' },
];

const EDGE_BLOCK: readonly Field[] = [
  { constant: 'WAKE_WORD_OFFSET', offset: 0, size: 4, type: 'i32', group: 'wakers' },
  { constant: 'QUEUE_TAIL_OFFSET', offset: 128, size: 4, type: 'i32', group: 'publishers' },
  { constant: 'QUEUE_HEAD_OFFSET', offset: 256, size: 4, type: 'i32', group: 'edge' },
  { constant: 'QUEUE_CELLS_OFFSET', offset: 384, size: 4, type: 'i32[]', group: 'both' },
];

const PRODUCER_TABLE: readonly Field[] = [
  { constant: 'TABLE_COUNT_OFFSET', offset: 0, size: 4, type: 'i32', group: 'lock holder' },
  { constant: 'TABLE_NEWEST_OFFSET', offset: 4, size: 4, type: 'i32', group: 'lock holder' },
  { constant: 'TABLE_OLDEST_OFFSET', offset: 8, size: 4, type: 'i32', group: 'lock holder' },
  { constant: 'TABLE_FREE_OFFSET', offset: 12, size: 4, type: 'i32', group: 'lock holder' },
  { constant: 'TABLE_TOUCHED_OFFSET', offset: 16, size: 4, type: 'i32', group: 'lock holder' },
  { constant: 'TABLE_BUCKETS_OFFSET', offset: 32, size: 4, type: 'i32[]', group: 'lock holder' },
];

const ALLOCATOR: readonly Field[] = [
  { constant: 'ALLOCATOR_LOCK_OFFSET', offset: 0, size: 4, type: 'i32', group: 'lock holder' },
  { constant: 'ALLOCATOR_PRODUCER_UNITS_OFFSET', offset: 4, size: 4, type: 'i32', group: 'lock holder' },
  { constant: 'ALLOCATOR_USED_OFFSET', offset: 8, size: 8, type: 'f64', group: 'lock holder' },
  { constant: 'ALLOCATOR_REFUSALS_OFFSET', offset: 16, size: 8, type: 'f64', group: 'lock holder' },
  { constant: 'ALLOCATOR_HAND_OFFSET', offset: 24, size: 4, type: 'i32', group: 'lock holder' },
  { constant: 'FREE_HEADS_OFFSET', offset: 128, size: 128, type: 'i32[]', group: 'free heads' },
  { constant: 'NEXT_OFFSET', offset: 256, size: 4, type: 'i32[]', group: 'links' },
];

const TABLES = {
  'stream slot': SLOT,
  'edge block': EDGE_BLOCK,
  'producer table': PRODUCER_TABLE,
  allocator: ALLOCATOR,
};
const ALIGNMENT = { i32: 4, f64: 8, 'u8[]': 1, 'i32[]': 4 };
/** Two cache lines of 64 bytes: the prefetcher fetches them together. */
const LINE_PAIR_BYTES = 128;

test('every offset is the one in the byte tables', () => {
  for (const { constant, offset } of Object.values(TABLES).flat()) {
    assert.equal(layout[constant], offset, constant);
  }
});

test('the byte tables name every offset that there is', () => {
  const named = Object.values(TABLES).flatMap((table) => table.map(({ constant }) => constant as string));
  const exported = Object.keys(layout).filter((name) => name.endsWith('_OFFSET'));
  assert.deepEqual(exported.toSorted(), named.toSorted());
});

for (const [name, table] of Object.entries(TABLES)) {
  test(`the fields of the ${name} are aligned and do not overlap`, () => {
    let end = 0;
    for (const { constant, offset, size, type } of table) {
      assert.equal(offset % ALIGNMENT[type], 0, `${constant} is aligned`);
      assert.ok(offset >= end, `${constant} begins after its neighbour's end`);
      end = offset + size;
    }
  });

  test(`fields of the ${name} with different writers stand on different pairs of cache lines`, () => {
    const groups = new Map<number, string>();
    for (const { constant, offset, size, group } of table) {
      const pair = Math.floor(offset / LINE_PAIR_BYTES);
      assert.equal(Math.floor((offset + size - 1) / LINE_PAIR_BYTES), pair, `${constant} lies in one pair`);
      assert.equal(
        groups.get(pair) ?? group,
        group,
        `${constant} shares its lines only with its own writers`,
      );
      groups.set(pair, group);
    }
  });
}

test('slots and edge blocks are whole pairs of cache lines and hold their fields', () => {
  assert.equal(layout.STREAM_SLOT_BYTES, 512);
  assert.equal(layout.edgeBlockBytes(1), 512);
  assert.equal(layout.edgeBlockBytes(32), 512);
  assert.equal(layout.edgeBlockBytes(33), 640);
  assert.equal(layout.edgeBlockBytes(1024), 4480);
});

test('the lists of the allocator follow each other without overlap, whatever the number of units', () => {
  assert.equal(layout.previousOffset(10), 296);
  assert.equal(layout.unitStateOffset(10), 336);
  assert.equal(layout.allocatorBytes(10), 352);
  for (const units of [1, 2, 3, 7, 8, 1023, 1024, 2 ** 20 + 1]) {
    assert.equal(layout.previousOffset(units) - layout.NEXT_OFFSET, 4 * units);
    assert.equal(layout.unitStateOffset(units) - layout.previousOffset(units), 4 * units);
    assert.ok(layout.allocatorBytes(units) >= layout.unitStateOffset(units) + units);
    assert.equal(layout.allocatorBytes(units) % 8, 0);
  }
});

test('the entries of a producer table follow its chains, aligned, and fit into the block', () => {
  assert.equal(layout.tableBuckets(11), 16);
  assert.equal(layout.tableEntriesOffset(11), 96);
  assert.deepEqual(RECORD_BYTES, [168, 56]);
  assert.equal(layout.tableCapacity(11, 168), 10);
  assert.equal(layout.tableCapacity(11, 56), 27);
  for (let order = layout.TABLE_ORDER_MIN; order <= layout.RING_ORDER_MAX; order++) {
    assert.equal(layout.tableEntriesOffset(order) % 8, 0);
    for (const bytes of [168, 56]) {
      const entryBytes = bytes + layout.ENTRY_LINK_BYTES;
      assert.equal(entryBytes % 8, 0);
      const used = layout.tableEntriesOffset(order) + layout.tableCapacity(order, bytes) * entryBytes;
      assert.ok(used <= 2 ** order && used + entryBytes > 2 ** order);
    }
  }
});

test('sizes are what the rules ask for: S5 bounds a ring, W1 gives each edge and the log a bit', () => {
  assert.equal(layout.UNIT_BYTES, 1024);
  assert.equal(2 ** layout.UNIT_ORDER, layout.UNIT_BYTES);
  assert.equal(layout.RING_ORDER_MAX, 30);
  assert.equal(layout.SEGMENT_BYTES_MAX, 2 ** 30);
  assert.equal(layout.DATA_ORDER_MIN, 12);
  assert.equal(layout.INDEX_ORDER_MIN, 10);
  assert.equal(layout.EDGES_MAX, 31);
  assert.equal(layout.LOG_BIT, -(2 ** 31));
  assert.equal(layout.EPOCH_BYTES_MAX, 16);
  assert.deepEqual([layout.STREAM_FREE, layout.STREAM_OPEN, layout.STREAM_CLOSED], [0, 1, 2]);
});

test('what is done to a stream lands at the bytes of the table', () => {
  const buffers = createRings({ streamsMax: 2, memoryBytes: 64 * 1024 });
  const rings = new Rings(buffers);
  const i32 = (offset: number) => new Int32Array(buffers.slots, 512 + offset, 1)[0];
  const f64 = (offset: number) => new Float64Array(buffers.slots, 512 + offset, 1)[0];

  const stream = openRingStream(rings, 1, {
    epoch: 'abcdefgh12',
    events: 3,
    bytes: 5000,
    dataBytesMax: 8192,
  });
  assert.deepEqual([i32(0), i32(4), i32(12), i32(20), i32(24), i32(28)], [0, 1, 0, 0, 0, 10]);
  assert.deepEqual([f64(32), f64(40), f64(48), f64(56)], [1, 0, 0, NOW_MS]);
  assert.deepEqual([f64(64), f64(72), f64(80), f64(88)], [3, 5000, 8192, 0]);
  assert.deepEqual([f64(112), i32(120)], [0, 0]);
  assert.equal(Buffer.from(buffers.slots, 512 + 96, 16).toString('latin1'), 'abcdefgh12\0\0\0\0\0\0');
  assert.deepEqual([i32(128), i32(256), i32(260)], [1, 0, 0]);

  const batch = new FrameBatch(1024);
  for (let i = 0; i < 7; i++) batch.pushText(Buffer.from('x'), 0, 1, null);
  new Appender(rings).append(stream, batch, NOW_MS + 1, -1);
  const frameBytes = 'id: abcdefgh12.1\ndata: x\n\n'.length;
  assert.deepEqual([i32(0), i32(12), i32(20), i32(24)], [0, 12, 10, 7 * frameBytes]);
  assert.deepEqual([f64(32), f64(40), f64(48), f64(56)], [5, 7, 7, NOW_MS + 1]);
  assert.deepEqual([f64(88), i32(256)], [4, 4 * frameBytes]);

  closeStream(rings, stream, NOW_MS + 2);
  assert.deepEqual([i32(4), f64(56)], [2, NOW_MS + 2]);
  addSubscribers(rings, stream, 3);
  assert.equal(i32(392), 3);
  removeStream(rings, stream);
  assert.deepEqual([i32(4), i32(12), i32(20), i32(128), i32(260)], [0, 0, 0, 2, 2]);
  assert.ok(
    new Int32Array(buffers.slots, 0, 128).every((word) => word === 0),
    'the slot before it is untouched',
  );
});

test('what is announced lands at the bytes of the table', () => {
  const rings = new Rings(createRings({ streamsMax: 5, memoryBytes: 1024 }));
  const buffer = createWakes(2, 5);
  const wakes = new Wakes(buffer, rings);
  const block = layout.edgeBlockBytes(8);
  assert.equal(buffer.byteLength, 2 * block);
  assert.equal(createWakes(2, 5, 1).byteLength, 3 * block, 'and one for the log thread');
  wakes.addInterest(4, 1);
  assert.equal(rings.i32[(4 * 512 + 384) / 4], 0b10);
  wakes.announce(4, -1);
  assert.equal(rings.i32[(4 * 512 + 388) / 4], 0b10);
  const words = new Int32Array(buffer, block, block / 4);
  assert.deepEqual([words[0], words[128 / 4], words[256 / 4], words[384 / 4]], [1, 1, 0, 5]);
  assert.equal(wakes.take(1), 4);
  assert.deepEqual([words[0], words[128 / 4], words[256 / 4], words[384 / 4]], [1, 1, 1, 0]);
  assert.ok(
    new Int32Array(buffer, 0, block / 4).every((word) => word === 0),
    'the other edge is not woken',
  );
});
