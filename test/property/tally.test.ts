import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { createTallies, Tally, type TallyKey, TallyOf } from '#gapless/ring/tally.js';

const KEY: fc.Arbitrary<TallyKey> = fc.record({ first: fc.integer(), second: fc.integer() });
const CHANGES = fc.array(fc.tuple(KEY, fc.integer({ min: 1, max: 1000 })), { minLength: 1, maxLength: 50 });

test('9.3 a tally never says less than was added, and says nothing when all is taken back', () => {
  fc.assert(
    fc.property(CHANGES, (changes) => {
      const tally = new Tally(createTallies(), TallyOf.addressSubscribers);
      const sums = new Map<TallyKey, number>();
      for (const [key, amount] of changes) {
        tally.add(key, amount);
        sums.set(key, (sums.get(key) ?? 0) + amount);
      }
      for (const [key, sum] of sums) assert.ok(tally.level(key) >= sum);
      for (const [key, amount] of changes) tally.add(key, -amount);
      for (const key of sums.keys()) assert.equal(tally.level(key), 0);
    }),
  );
});

test('9.3 what leaks away never goes below nothing, and other tallies do not notice', () => {
  fc.assert(
    fc.property(KEY, fc.nat(1000), fc.nat(2000), (key, added, drained) => {
      const buffer = createTallies();
      const [tally, other] = [
        new Tally(buffer, TallyOf.publishedEvents),
        new Tally(buffer, TallyOf.replayedByteUnits),
      ];
      tally.add(key, added);
      other.add(key, added);
      tally.drain(drained);
      assert.equal(tally.level(key), Math.max(0, added - drained));
      assert.equal(other.level(key), added);
    }),
  );
});

test('9.3 ten thousand callers of one each do not look like one caller of a hundred', () => {
  const tally = new Tally(createTallies(), TallyOf.addressSubscribers);
  const key = (n: number): TallyKey => ({
    first: Math.imul(n, 0x9e3779b1),
    second: Math.imul(n ^ 0x5bd1e995, 0x85ebca6b),
  });
  for (let n = 0; n < 10_000; n++) tally.add(key(n), 1);
  assert.ok(tally.level(key(20_000)) < 100);
});

test('9.3 a sum that would not fit is not added', () => {
  const tally = new Tally(createTallies(), TallyOf.publishedByteUnits);
  const key = { first: 1, second: 2 };
  for (let count = 0; count < 100; count++) tally.add(key, 2 ** 28);
  assert.equal(tally.level(key), 2 ** 30);
});
