import assert from 'node:assert/strict';
import { test } from 'node:test';
import { APPEND_NO_MEMORY } from '#gapless/ring/append.js';
import { removeStream, trimToRetention } from '#gapless/ring/lifecycle.js';
import { createWakes, Wakes } from '#gapless/ring/wake-queue.js';
import { RingStage, texts } from './ring-stage.js';

const LIVE_WINDOW_EVENTS = 1024;

test('2.1 without readers a stream keeps between its limit and twice that', () => {
  const stage = new RingStage(2 ** 20);
  const stream = stage.open({ events: 5 });
  const kept: number[] = [];
  for (let i = 1; i <= 17; i++) {
    stage.append(stream, `${i}`);
    kept.push(i - stage.positions(stream).floor + 1);
  }
  assert.deepEqual(kept, [1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 5, 6, 7, 8, 9, 10, 5]);
});

test('2.1 a stream that keeps 5 events leaves a burst for those who have not read it yet', () => {
  const stage = new RingStage(2 ** 20);
  const wakes = new Wakes(createWakes(1, 4), stage.rings);
  const stream = stage.open({ events: 5 });
  wakes.addInterest(stream.slot, 0);
  stage.append(stream, ...texts('burst', 100));
  wakes.tell(stream.slot, stage.appender.toTell, -1);
  trimToRetention(stage.rings, stream);
  assert.equal(stage.positions(stream).floor, 1, 'the edge was told and has not read');
  wakes.take(0);
  wakes.settle(stream.slot, 0);
  trimToRetention(stage.rings, stream);
  assert.equal(stage.positions(stream).floor, 96, 'the edge has read it all');
});

test('2.1 a burst is left for its readers between the append and the telling too', () => {
  // Another edge that has just read up to the burst trims at this moment; a live reader must not pay for it.
  const stage = new RingStage(2 ** 20);
  const wakes = new Wakes(createWakes(2, 4), stage.rings);
  const stream = stage.open({ events: 5 });
  wakes.addInterest(stream.slot, 0);
  wakes.addInterest(stream.slot, 1);
  stage.append(stream, ...texts('burst', 100));
  trimToRetention(stage.rings, stream);
  assert.equal(stage.positions(stream).floor, 1, 'no edge was given a chance to read');
});

test('2.1 a second publisher that makes room leaves an append that nobody was told of yet', () => {
  const stage = new RingStage(2 ** 20);
  const wakes = new Wakes(createWakes(1, 4), stage.rings);
  const stream = stage.open({ events: 5 });
  wakes.addInterest(stream.slot, 0);
  stage.append(stream, ...texts('first', 100));
  stage.append(stream, ...texts('second', 100));
  assert.equal(stage.positions(stream).floor, 1, 'the edge was not told of either');
});

test('2.1 while a burst is unread, even a tight policy keeps the live window and not above twice that', () => {
  const stage = new RingStage(2 ** 20);
  const wakes = new Wakes(createWakes(1, 4), stage.rings);
  const stream = stage.open({ events: 5 });
  wakes.addInterest(stream.slot, 0);
  for (let i = 0; i < 60; i++) {
    stage.append(stream, ...texts('burst', 50));
    wakes.tell(stream.slot, stage.appender.toTell, -1);
    const { floor, head } = stage.positions(stream);
    assert.ok(head - floor + 1 >= Math.min(head, LIVE_WINDOW_EVENTS));
    assert.ok(head - floor + 1 <= 2 * LIVE_WINDOW_EVENTS);
  }
});

test('3.6 a publish that is refused for lack of memory changes nothing, and holds none', () => {
  const stage = new RingStage(64 * 1024);
  const stream = stage.open();
  const used = stage.usedBytes;
  assert.equal(stage.tryAppend(stream, 'x'.repeat(40_000)), APPEND_NO_MEMORY);
  assert.deepEqual([stage.positions(stream).head, stage.usedBytes], [0, used]);
});

test('3.6 a publish for which the arena has a block is not refused, whatever smaller rings come before it', () => {
  // One block of 16 KiB for the frames and one of 1 KiB for the index, both free.
  const stage = new RingStage(17 * 1024);
  const stream = stage.open();
  stage.append(stream, 'x'.repeat(16_000));
  assert.deepEqual(stage.texts(stream, 0), ['x'.repeat(16_000)]);
});

test('a ring that grew gives back what it had, and a removed stream all of it', () => {
  const stage = new RingStage(2 ** 20);
  const stream = stage.open();
  const first = texts('a', 3, 1200);
  stage.append(stream, ...first);
  assert.equal(stage.usedBytes, 4096 + 1024);
  const second = texts('b', 300, 10);
  stage.append(stream, ...second);
  assert.equal(stage.usedBytes, 16_384 + 2048);
  assert.deepEqual(stage.texts(stream, 0), [...first, ...second]);
  removeStream(stage.rings, stream);
  assert.equal(stage.usedBytes, 0);
});

test('2.1 a ring does not grow for events that no limit asks to keep', () => {
  const stage = new RingStage(2 ** 20);
  const stream = stage.open({ events: 5 });
  for (let i = 0; i < 50; i++) stage.append(stream, `${i}`.padEnd(1000, '.'));
  // Twice the limit would take 16 KiB; the limit itself and the next event take 8.
  assert.equal(stage.usedBytes, 8192 + 1024);
});

test('when the arena is full, a stream evicts within what it has', () => {
  const stage = new RingStage(8 * 1024);
  const stream = stage.open();
  for (let i = 0; i < 50; i++) stage.append(stream, `${i}`.padEnd(1000, '.'));
  const { floor, head, evictedEvents } = stage.positions(stream);
  assert.deepEqual([floor, head, evictedEvents], [48, 50, 47]);
  assert.deepEqual(
    stage.texts(stream, 47),
    [47, 48, 49].map((i) => `${i}`.padEnd(1000, '.')),
  );
});

test('a stream of many small events evicts by their number when only the index cannot grow', () => {
  // A block of 8 KiB for the frames and one of 1 KiB for the index, which has places for 256 events.
  const stage = new RingStage(9 * 1024);
  const stream = stage.open();
  const all = texts('', 300);
  stage.append(stream, ...all.slice(0, 200));
  stage.append(stream, ...all.slice(200));
  const { floor, head } = stage.positions(stream);
  assert.deepEqual([floor, head], [45, 300]);
  assert.deepEqual(stage.texts(stream, 44), all.slice(44));
});
