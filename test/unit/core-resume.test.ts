import assert from 'node:assert/strict';
import { test } from 'node:test';
import { parseCursor } from '#gapless/core/cursor.js';
import {
  classifyResume,
  earliestCursor,
  lowestReadable,
  type StreamPositions,
} from '#gapless/core/resume.js';

const EPOCH = 'abcdefghij';

/** The ring holds 50..100, and the log, where there is one, from 20. */
const inMemory: StreamPositions = { epoch: EPOCH, floor: 50, logFloor: null, committed: 100 };
const durable: StreamPositions = { ...inMemory, logFloor: 20 };
const empty: StreamPositions = { epoch: EPOCH, floor: 1, logFloor: null, committed: 0 };

function resume(seq: number, at: StreamPositions, epoch = EPOCH): string {
  const result = classifyResume({ epoch, seq }, at);
  return result.outcome === 'refused' ? result.reason : result.outcome;
}

test('4.4 a cursor of another epoch is refused, wherever its seq would lie (I3)', () => {
  for (const seq of [0, 49, 75, 100, 101]) assert.equal(resume(seq, durable, 'zyxwvutsrq'), 'epoch_changed');
});

test('4.4 a cursor beyond what may be seen is ahead of the head (I4)', () => {
  assert.equal(resume(101, inMemory), 'ahead_of_head');
  assert.equal(resume(Number.MAX_SAFE_INTEGER, inMemory), 'ahead_of_head');
  assert.equal(resume(1, empty), 'ahead_of_head');
});

test('4.4 a cursor at the head is live', () => {
  assert.equal(resume(100, inMemory), 'live');
  assert.equal(resume(0, empty), 'live');
});

test('4.4 a cursor whose successor is in the ring resumes from the ring (I2)', () => {
  assert.equal(resume(49, inMemory), 'ring');
  assert.equal(resume(99, inMemory), 'ring');
  assert.equal(resume(49, durable), 'ring');
});

test('4.4 a cursor whose successor is only in the log resumes from the log (I2)', () => {
  assert.equal(resume(48, durable), 'log');
  assert.equal(resume(19, durable), 'log');
});

test('4.4 a cursor whose successor is gone is evicted, by as little as one event (I2)', () => {
  assert.equal(resume(48, inMemory), 'evicted');
  assert.equal(resume(0, inMemory), 'evicted');
  assert.equal(resume(18, durable), 'evicted');
});

test('4.4 a log that keeps less than the ring takes nothing away from it', () => {
  const shortLog = { ...inMemory, logFloor: 80 };
  assert.equal(resume(49, shortLog), 'ring');
  assert.equal(resume(48, shortLog), 'evicted');
  assert.equal(lowestReadable(shortLog), 50);
});

test('4.4 a stream whose events are all evicted is live at its head and refuses all before', () => {
  const drained = { ...inMemory, floor: 101 };
  assert.equal(resume(100, drained), 'live');
  assert.equal(resume(99, drained), 'evicted');
  assert.equal(earliestCursor(drained), `${EPOCH}.100`);
});

test('4.4 the earliest cursor is just before the lowest event that can be read', () => {
  assert.equal(earliestCursor(inMemory), `${EPOCH}.49`);
  assert.equal(earliestCursor(durable), `${EPOCH}.19`);
  assert.equal(earliestCursor(empty), `${EPOCH}.0`);
  assert.equal(resume(parseCursor(earliestCursor(durable))?.seq ?? -1, durable), 'log');
});

test('a floor outside the committed events is a broken invariant, not an outcome (I5)', () => {
  for (const broken of [
    { ...inMemory, floor: 0 },
    { ...inMemory, floor: 102 },
    { ...inMemory, logFloor: 0 },
    { ...inMemory, logFloor: 102 },
  ]) {
    assert.throws(() => resume(75, broken), { name: 'InvariantError' });
    assert.throws(() => earliestCursor(broken), { name: 'InvariantError' });
  }
});
