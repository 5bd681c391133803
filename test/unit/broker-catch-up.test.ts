import assert from 'node:assert/strict';
import { test } from 'node:test';
import { CatchUp } from '#gapless/broker/catch-up.js';
import type { Subscription } from '#gapless/broker/subscription.js';
import { CounterHistogram, Counters, createCounters } from '#gapless/ring/counters.js';

const { catchUpSeconds } = CounterHistogram;
const START_MS = 1_750_000_000_000;

/** All that is asked of a reader: to be itself. */
function makeReader(): Subscription {
  return {} as Subscription;
}

test('the time to catch up counts from the first look into the log, for each reader on its own', () => {
  let nowMs = START_MS;
  const counters = new Counters(createCounters(1), 0);
  const catchUp = new CatchUp(counters, () => nowMs);
  const [slow, fast] = [makeReader(), makeReader()];
  catchUp.isBehind(slow);
  nowMs += 400;
  catchUp.isBehind(slow);
  catchUp.isBehind(fast);
  nowMs += 20;
  catchUp.isBack(fast);
  assert.deepEqual(counters.observed(catchUpSeconds), { buckets: [0, 1, 0, 0, 0, 0, 0, 0, 0], sum: 0.02 });
  nowMs += 1000;
  catchUp.isBack(slow);
  assert.deepEqual(counters.observed(catchUpSeconds), { buckets: [0, 1, 0, 0, 1, 0, 0, 0, 0], sum: 1.44 });

  catchUp.isBack(slow);
  assert.equal(counters.observed(catchUpSeconds).sum, 1.44, 'who was not behind is not counted');
  catchUp.isBehind(slow);
  nowMs -= 10_000;
  catchUp.isBack(slow);
  assert.deepEqual(
    counters.observed(catchUpSeconds),
    { buckets: [1, 1, 0, 0, 1, 0, 0, 0, 0], sum: 1.44 },
    'a clock that was set back takes nothing from the sum',
  );
});
