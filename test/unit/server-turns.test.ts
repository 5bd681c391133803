import assert from 'node:assert/strict';
import { test } from 'node:test';
import { Turns } from '#gapless/server/turns.js';

test('so many are under way at a time, the others in their order, whatever becomes of those before', async () => {
  const turns = new Turns(3);
  const begun: number[] = [];
  const ends: (() => void)[] = [];
  const all = Array.from({ length: 10 }, (_, index) =>
    turns.take(async () => {
      begun.push(index);
      await new Promise<void>((resolve) => ends.push(resolve));
      if (index % 2 === 1) throw new Error('it fails');
      return index;
    }),
  );
  const outcomes = Promise.allSettled(all);
  for (let ended = 0; ended < 10; ended++) {
    await new Promise((resolve) => setImmediate(resolve));
    assert.equal(begun.length, Math.min(10, ended + 3));
    ends[ended]?.();
  }
  assert.deepEqual(
    (await outcomes).map(({ status }) => status === 'fulfilled'),
    begun.map((index) => index % 2 === 0),
  );
  assert.deepEqual(
    begun,
    [...begun].sort((a, b) => a - b),
  );
  assert.equal(await turns.take(async () => 'it goes on'), 'it goes on');
});
