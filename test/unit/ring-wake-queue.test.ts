import assert from 'node:assert/strict';
import { test } from 'node:test';
import { InvariantError } from '#gapless/assert.js';
import * as layout from '#gapless/ring/layout.js';
import { createRings, i32At, Rings } from '#gapless/ring/rings.js';
import { createWakes, LOG_EDGE, Wakes } from '#gapless/ring/wake-queue.js';
import { withDeadline } from '../support/deadline.js';

interface Queue {
  readonly wakes: Wakes;
  readonly rings: Rings;
  readonly buffer: SharedArrayBuffer;
}

function queue(edges: number, slots: number, durable = false): Queue {
  const rings = new Rings(createRings({ streamsMax: slots, memoryBytes: 1024, durable }));
  const buffer = createWakes(edges, slots, durable ? 1 : 0);
  return { wakes: new Wakes(buffer, rings), rings, buffer };
}

/** Everything that the edge's queue holds, in order. */
function takeAll(wakes: Wakes, edge: number): number[] {
  const slots: number[] = [];
  for (let slot = wakes.take(edge); slot >= 0; slot = wakes.take(edge)) slots.push(slot);
  return slots;
}

function dirtyMask(rings: Rings, slot: number): number {
  return rings.i32[i32At(slot, layout.DIRTY_MASK_OFFSET)] as number;
}

test('a stream that nobody reads is not queued anywhere', () => {
  const { wakes, rings } = queue(2, 4);
  const tickets = [wakes.ticket(0), wakes.ticket(1)];
  assert.equal(wakes.announce(3, 0), false);
  assert.deepEqual([takeAll(wakes, 0), takeAll(wakes, 1), dirtyMask(rings, 3)], [[], [], 0]);
  assert.deepEqual([wakes.ticket(0), wakes.ticket(1)], tickets);
});

test('W1 however often a stream is announced, it is queued once at each edge that reads it', () => {
  const { wakes } = queue(3, 4);
  wakes.addInterest(2, 0);
  wakes.addInterest(2, 2);
  for (let i = 0; i < 10; i++) wakes.announce(2, -1);
  assert.deepEqual([takeAll(wakes, 0), takeAll(wakes, 1), takeAll(wakes, 2)], [[2], [], [2]]);
});

test('W1 a slot that was taken is not queued again before it is settled', () => {
  const { wakes, rings } = queue(1, 4);
  wakes.addInterest(2, 0);
  wakes.announce(2, -1);
  assert.equal(wakes.take(0), 2);
  wakes.announce(2, -1);
  assert.equal(wakes.take(0), -1, 'the edge is reading it and looks once more after it has settled');
  wakes.settle(2, 0);
  assert.equal(dirtyMask(rings, 2), 0);
  wakes.announce(2, -1);
  assert.equal(wakes.take(0), 2);
});

test('an edge settles for itself alone', () => {
  const { wakes, rings } = queue(3, 1);
  for (let edge = 0; edge < 3; edge++) wakes.addInterest(0, edge);
  wakes.announce(0, -1);
  wakes.take(1);
  wakes.settle(0, 1);
  assert.equal(dirtyMask(rings, 0), 0b101);
  wakes.announce(0, -1);
  assert.deepEqual([takeAll(wakes, 0), takeAll(wakes, 1), takeAll(wakes, 2)], [[0], [0], [0]]);
});

test('an edge whose last reader left is not told any more', () => {
  const { wakes } = queue(2, 1);
  wakes.addInterest(0, 0);
  wakes.addInterest(0, 1);
  wakes.removeInterest(0, 0);
  wakes.announce(0, -1);
  assert.deepEqual([takeAll(wakes, 0), takeAll(wakes, 1)], [[], [0]]);
});

test('a publisher is told when its own edge has news to drain, and does not wake itself', () => {
  const { wakes } = queue(2, 1);
  wakes.addInterest(0, 0);
  wakes.addInterest(0, 1);
  const tickets = [wakes.ticket(0), wakes.ticket(1)] as const;
  assert.equal(wakes.announce(0, 0), true);
  assert.equal(wakes.announce(0, 0), false, 'it was told before');
  assert.equal(wakes.ticket(0), tickets[0]);
  assert.notEqual(wakes.ticket(1), tickets[1]);
  assert.equal(wakes.announce(0, 1), false, 'both are queued already');
});

test('slots come out in the order in which they were announced', () => {
  const { wakes } = queue(1, 8);
  for (const slot of [5, 0, 7, 3]) {
    wakes.addInterest(slot, 0);
    wakes.announce(slot, -1);
  }
  assert.deepEqual(takeAll(wakes, 0), [5, 0, 7, 3]);
});

test('W1 all slots at once fit into every queue, and again, across the wrap of its positions', () => {
  for (const slots of [1, 2, 3, 4, 7, 8, 100]) {
    const { wakes, buffer } = queue(2, slots);
    const all = Array.from({ length: slots }, (_, slot) => slot);
    for (const slot of all) for (const edge of [0, 1]) wakes.addInterest(slot, edge);
    // Positions that are about to pass 2^31 at the one edge, and 2^32 at the other.
    const words = new Int32Array(buffer);
    const blockWords = words.length / 2;
    for (const [edge, position] of [2 ** 31 - 3, -3].entries()) {
      words[edge * blockWords + layout.QUEUE_HEAD_OFFSET / 4] = position;
      words[edge * blockWords + layout.QUEUE_TAIL_OFFSET / 4] = position;
    }
    for (let round = 0; round < 5; round++) {
      for (const slot of all) wakes.announce(slot, -1);
      for (const edge of [0, 1]) {
        assert.deepEqual(takeAll(wakes, edge), all);
        for (const slot of all) wakes.settle(slot, edge);
      }
    }
  }
});

test('every one of 31 edges has its own bit, and the log thread the last', () => {
  const { wakes, rings } = queue(31, 2, true);
  for (let edge = 0; edge < 31; edge++) wakes.addInterest(1, edge);
  wakes.removeInterest(1, 29);
  assert.equal(wakes.announce(1, 30), true);
  assert.equal(dirtyMask(rings, 1), 0x5fff_ffff);
  for (let edge = 0; edge < 31; edge++) assert.deepEqual(takeAll(wakes, edge), edge === 29 ? [] : [1]);
  wakes.settle(1, 30);
  assert.equal(dirtyMask(rings, 1), 0x1fff_ffff);
  assert.deepEqual(takeAll(wakes, LOG_EDGE), [], 'the log is told of appends, not of what edges are told of');
  assert.throws(() => createWakes(32, 2), InvariantError);
});

test('those whose bits an append has set are told, and nobody else', () => {
  const { wakes, rings } = queue(3, 4);
  const tickets = [0, 1, 2].map((edge) => wakes.ticket(edge));
  Atomics.store(rings.i32, i32At(2, layout.DIRTY_MASK_OFFSET), 0b101);
  assert.equal(wakes.tell(2, 0b100, -1), false);
  assert.equal(wakes.tell(2, 0b001, 0), true);
  assert.equal(wakes.tell(2, 0, 0), false);
  assert.deepEqual([takeAll(wakes, 0), takeAll(wakes, 1), takeAll(wakes, 2)], [[2], [], [2]]);
  assert.deepEqual([wakes.ticket(0), wakes.ticket(1)], [tickets[0], tickets[1]]);
  assert.notEqual(wakes.ticket(2), tickets[2]);
});

test('the log thread is told, sleeps and settles like an edge', async () => {
  const { wakes, rings } = queue(2, 4, true);
  const woken = wakes.wait(LOG_EDGE, wakes.ticket(LOG_EDGE));
  assert.ok(woken !== null);
  Atomics.store(rings.i32, i32At(3, layout.DIRTY_MASK_OFFSET), layout.LOG_BIT);
  wakes.tell(3, layout.LOG_BIT, 1);
  await withDeadline('the wake-up', woken);
  assert.deepEqual([takeAll(wakes, 0), takeAll(wakes, 1), takeAll(wakes, LOG_EDGE)], [[], [], [3]]);
  wakes.settle(3, LOG_EDGE);
  assert.equal(dirtyMask(rings, 3), 0);
});

test('a wait ends with the next announcement', async () => {
  const { wakes } = queue(1, 2);
  wakes.addInterest(1, 0);
  const woken = wakes.wait(0, wakes.ticket(0));
  assert.ok(woken !== null);
  wakes.announce(1, -1);
  await withDeadline('the wake-up', woken);
  assert.equal(wakes.take(0), 1);
});

test('a wait with a ticket from before an announcement does not begin', () => {
  const { wakes } = queue(1, 2);
  wakes.addInterest(1, 0);
  const ticket = wakes.ticket(0);
  wakes.announce(1, -1);
  assert.equal(wakes.wait(0, ticket), null);
});
