import assert from 'node:assert/strict';
import { test } from 'node:test';
import {
  expectedSeq,
  isProducerId,
  judgePublish,
  PRODUCER_ID_LENGTH_MAX,
  PRODUCER_WINDOW,
  PUBLISH_DUPLICATE,
  PUBLISH_FENCED,
  PUBLISH_FORGOTTEN,
  PUBLISH_GAP,
  PUBLISH_NEXT,
  parseCount,
} from '#gapless/core/producer.js';

const newest = { epoch: 3, seq: 20 };

test('3.4 a producer that is not known begins with 0, in any epoch', () => {
  for (const epoch of [0, 1, 2 ** 53 - 1]) {
    assert.equal(judgePublish({ epoch, seq: 0 }, null), PUBLISH_NEXT);
    assert.equal(judgePublish({ epoch, seq: 1 }, null), PUBLISH_GAP);
    assert.equal(expectedSeq({ epoch, seq: 1 }, null), 0);
  }
});

test('3.4 in its epoch the next seq is taken, and no later one', () => {
  assert.equal(judgePublish({ epoch: 3, seq: 21 }, newest), PUBLISH_NEXT);
  for (const seq of [22, 23, 2 ** 53 - 1]) {
    assert.equal(judgePublish({ epoch: 3, seq }, newest), PUBLISH_GAP);
    assert.equal(expectedSeq({ epoch: 3, seq }, newest), 21);
  }
});

test('3.4 a repeat is one, with its place as far back as the window goes', () => {
  for (let back = 0; back <= newest.seq; back++) {
    const outcome = judgePublish({ epoch: 3, seq: newest.seq - back }, newest);
    assert.equal(outcome, back < PRODUCER_WINDOW ? PUBLISH_DUPLICATE : PUBLISH_FORGOTTEN);
  }
});

test('3.4 a newer epoch begins with 0 and fences the older ones', () => {
  assert.equal(judgePublish({ epoch: 4, seq: 0 }, newest), PUBLISH_NEXT);
  assert.equal(judgePublish({ epoch: 9, seq: 0 }, newest), PUBLISH_NEXT);
  assert.equal(judgePublish({ epoch: 4, seq: 21 }, newest), PUBLISH_GAP);
  assert.equal(expectedSeq({ epoch: 4, seq: 21 }, newest), 0);
  for (const seq of [0, 20, 21, 22]) assert.equal(judgePublish({ epoch: 2, seq }, newest), PUBLISH_FENCED);
});

test('3.4 a number has one spelling, and 2^53-1 is the largest', () => {
  assert.deepEqual(['0', '7', '9007199254740991'].map(parseCount), [0, 7, 2 ** 53 - 1]);
  const wrong = ['', '-1', '+1', '01', '1e3', '1.0', ' 1', '0x1', '9007199254740992', '1'.repeat(17), 'a'];
  for (const text of wrong) assert.equal(parseCount(text), null, text);
});

test('3.4 an id is printable ASCII, bounded', () => {
  for (const id of ['a', 'two words', '"quoted"', 'x'.repeat(PRODUCER_ID_LENGTH_MAX)])
    assert.ok(isProducerId(id));
  for (const id of ['', ' a', 'a ', 'ä', 'a\tb', 'a\0', 'x'.repeat(PRODUCER_ID_LENGTH_MAX + 1)])
    assert.ok(!isProducerId(id), id);
});
