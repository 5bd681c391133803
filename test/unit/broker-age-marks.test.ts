import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { AgeMarks } from '#gapless/broker/age-marks.js';

const AGE_MS = 1000;

/** How long until the next look at the stream, and how many events come right before it. */
const looks = fc.array(fc.tuple(fc.integer({ min: 1, max: AGE_MS / 4 }), fc.nat(3)), {
  maxLength: 200,
  size: 'max',
});

test('2.1 an event is kept for the age at least, and for no more than twice that', () => {
  fc.assert(
    fc.property(looks, (drawn) => {
      const marks = new AgeMarks(AGE_MS);
      const bornMs: number[] = [];
      let nowMs = 5_000_000;
      let old = 0;
      for (const [afterMs, events] of drawn) {
        nowMs += afterMs;
        for (let i = 0; i < events; i++) bornMs.push(nowMs - 1);
        old = Math.max(old, marks.advance(bornMs.length, nowMs));
        const kept = bornMs.slice(old);
        assert.ok(old <= bornMs.length);
        for (const goneMs of bornMs.slice(0, old))
          assert.ok(nowMs - goneMs >= AGE_MS, 'it was kept long enough');
        for (const keptMs of kept) assert.ok(nowMs - keptMs <= 2 * AGE_MS, 'it was not kept too long');
      }
    }),
    { numRuns: 1000 },
  );
});

test('a stream that falls silent keeps nothing once its last event is old', () => {
  const marks = new AgeMarks(AGE_MS);
  assert.equal(marks.advance(7, 10_000), 0);
  assert.equal(marks.advance(9, 10_100), 0, 'a note a tenth of the age after the last says too little');
  const olds: number[] = [];
  for (let nowMs = 10_250; nowMs <= 12_500; nowMs += 250) olds.push(marks.advance(9, nowMs));
  assert.deepEqual(olds.slice(0, 5), [0, 0, 0, 7, 9]);
});
