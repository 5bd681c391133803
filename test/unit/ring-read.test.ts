import assert from 'node:assert/strict';
import { test } from 'node:test';
import { FrameBatch } from '#gapless/core/sse-frame.js';
import { ANY_HEAD, APPENDED } from '#gapless/ring/append.js';
import * as layout from '#gapless/ring/layout.js';
import { removeStream, trimBelow } from '#gapless/ring/lifecycle.js';
import { FrameRun, READ_CAUGHT_UP, READ_GONE, READ_OK, READ_OVERTAKEN } from '#gapless/ring/read.js';
import { i32At } from '#gapless/ring/rings.js';
import { HookedRun, textsOf } from './ring-hooked-run.js';
import { RingStage, texts } from './ring-stage.js';

test('I5 a copy that eviction passed is thrown away, and the reader is told that it was overtaken', () => {
  const stage = new RingStage(64 * 1024);
  const stream = stage.open({ dataBytesMax: 4096 });
  stage.append(stream, ...texts('old', 3, 1200));
  const run = new HookedRun(() => stage.append(stream, ...texts('new', 1, 1200)));
  assert.equal(stage.reader.read(stream, 0, 4096, run), READ_OVERTAKEN);
  assert.equal(run.copies, 1);
  assert.equal(stage.reader.discarded, 1);
  assert.deepEqual([stage.reader.floorSeq, stage.reader.committedSeq], [2, 4]);
});

test('I5 eviction that ends where the copied run begins leaves the copy valid', () => {
  const stage = new RingStage(64 * 1024);
  const stream = stage.open({ dataBytesMax: 4096 });
  const old = texts('old', 3, 1200);
  stage.append(stream, ...old);
  const run = new HookedRun(() => stage.append(stream, ...texts('new', 1, 1200)));
  assert.equal(stage.reader.read(stream, 1, 4096, run), READ_OK);
  assert.deepEqual(textsOf(run), old.slice(1));
  assert.deepEqual([run.firstSeq, run.lastSeq, stage.reader.discarded], [2, 3, 0]);
});

test('I5 eviction by age during a copy is seen as well', () => {
  const stage = new RingStage(64 * 1024);
  const stream = stage.open();
  stage.append(stream, ...texts('old', 3));
  const run = new HookedRun(() => trimBelow(stage.rings, stream, 2));
  assert.equal(stage.reader.read(stream, 0, 4096, run), READ_OVERTAKEN);
  assert.equal(stage.reader.discarded, 1);
});

test('S3 a copy out of a ring that grew meanwhile is thrown away and read again from the new place', () => {
  const stage = new RingStage(64 * 1024);
  const stream = stage.open();
  const other = stage.open({ slot: 1, epoch: 'otherepoch' });
  const old = texts('old', 3, 1200);
  stage.append(stream, ...old);
  const run = new HookedRun((copy) => {
    if (copy > 1) return;
    stage.append(stream, ...texts('new', 2, 1200));
    // Takes the memory that the growth gave back.
    stage.append(other, ...texts('foreign', 3, 1200));
  });
  assert.equal(stage.reader.read(stream, 0, 2 ** 16, run), READ_OK);
  assert.deepEqual(textsOf(run), [...old, ...texts('new', 2, 1200)]);
  assert.deepEqual([run.copies, stage.reader.discarded], [2, 1]);
});

test('I5 a reader that was away while positions went half round is not taken in by how the floor looks (S3, S5)', () => {
  const stage = new RingStage(2 ** 25);
  const stream = stage.open({ dataBytesMax: 2 ** 24 });
  const batch = new FrameBatch(1 << 24);
  const data = new Uint8Array(2 ** 23).fill(0x78);
  batch.pushText(data, 0, data.length, null);
  const append = () => assert.equal(stage.appender.append(stream, batch, stage.nowMs, ANY_HEAD), APPENDED);
  append();
  const run = new HookedRun((copy) => {
    if (copy > 1) return;
    for (let bytes = 0; bytes < 2 ** 31 + 2 ** 25; bytes += data.length) append();
  });
  assert.equal(stage.reader.read(stream, 0, 2 ** 24, run), READ_OVERTAKEN);
  assert.deepEqual([run.copies, stage.reader.discarded], [1, 1]);
});

test('S4 a reader whose stream is removed during the copy gets nothing, whoever has the slot by then', () => {
  for (const reused of [false, true]) {
    const stage = new RingStage(64 * 1024);
    const stream = stage.open();
    stage.append(stream, ...texts('old', 3, 1200));
    const run = new HookedRun(() => {
      removeStream(stage.rings, stream);
      if (!reused) return;
      const next = stage.open({ epoch: 'nextepoch0' });
      stage.append(next, ...texts('new', 3, 1200));
    });
    assert.equal(stage.reader.read(stream, 0, 4096, run), READ_GONE, `slot reused: ${reused}`);
    assert.equal(stage.reader.discarded, 1);
  }
});

test('I5 memory that a stream gave back because it kept nothing is not read any more', () => {
  const stage = new RingStage(64 * 1024);
  const stream = stage.open();
  const other = stage.open({ slot: 1, epoch: 'otherepoch' });
  stage.append(stream, ...texts('old', 3, 1200));
  const run = new HookedRun(() => {
    trimBelow(stage.rings, stream, 4);
    stage.append(other, ...texts('foreign', 3, 1200));
  });
  assert.equal(stage.reader.read(stream, 0, 4096, run), READ_OVERTAKEN);
  assert.equal(stage.reader.floorSeq, 4);
});

test('a reader that was disturbed four times copies under the lock, so that writers cannot starve it', () => {
  const stage = new RingStage(2 ** 20);
  const stream = stage.open();
  stage.append(stream, 'first');
  const lockWord = i32At(stream.slot, layout.LOCK_OFFSET);
  const lockedAtCopy: boolean[] = [];
  const run = new HookedRun((copy) => {
    const locked = stage.rings.i32[lockWord] !== 0;
    lockedAtCopy.push(locked);
    // Half of the next size: each time the ring has to grow.
    if (!locked) stage.append(stream, 'x'.repeat(2 ** (11 + copy)));
  });
  assert.equal(stage.reader.read(stream, 0, 1, run), READ_OK);
  assert.deepEqual(textsOf(run), ['first']);
  assert.deepEqual(lockedAtCopy, [false, false, false, false, true]);
  assert.equal(stage.reader.discarded, 4);
  assert.equal(stage.rings.i32[lockWord], 0);
});

test('a reader at the newest event is caught up, with room for every answer in between', () => {
  const stage = new RingStage(64 * 1024);
  const stream = stage.open();
  const run = new FrameRun(0);
  assert.equal(stage.reader.read(stream, 0, 100, run), READ_CAUGHT_UP);
  stage.append(stream, 'a', 'b');
  const frameBytes = 'id: abcdefgh01.1\ndata: a\n\n'.length;
  const runs = [0, frameBytes - 1, frameBytes, 2 * frameBytes - 1, 2 * frameBytes].map((bytesMax) => {
    assert.equal(stage.reader.read(stream, 0, bytesMax, run), READ_OK);
    return run.lastSeq;
  });
  assert.deepEqual(runs, [1, 1, 1, 1, 2]);
  assert.equal(stage.reader.read(stream, 2, 100, run), READ_CAUGHT_UP);
});
