import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { acknowledge, joinNamed } from '#gapless/core/acknowledge.js';
import type { Cursor } from '#gapless/core/cursor.js';
import { classifyResume, type Start, type StreamPositions } from '#gapless/core/resume.js';

const EPOCH = 'abcdefghij';
const OTHER = 'zyxwvutsrq';

const positions: fc.Arbitrary<StreamPositions> = fc.nat(12).chain((committed) =>
  fc.record({
    epoch: fc.constant(EPOCH),
    floor: fc.integer({ min: 1, max: committed + 1 }),
    logFloor: fc.option(fc.integer({ min: 1, max: committed + 1 })),
    committed: fc.constant(committed),
  }),
);
const cursor: fc.Arbitrary<Cursor> = fc.record({
  epoch: fc.constantFrom(EPOCH, EPOCH, OTHER),
  seq: fc.nat(15),
});
const start: fc.Arbitrary<Start> = fc.oneof(
  cursor,
  fc.constantFrom('earliest' as const, 'latest' as const, null),
);

test('7 an acknowledgement moves forward only, and never beyond what may be seen (I9)', () => {
  fc.assert(
    fc.property(cursor, cursor, positions, (given, acked, at) => {
      const known = acknowledge(given, acked, at);
      if (given.epoch !== EPOCH) return assert.equal(known.outcome, 'epoch_changed');
      if (given.seq > at.committed) return assert.equal(known.outcome, 'ahead');
      assert.ok(known.outcome === 'known');
      assert.equal(known.acked.epoch, EPOCH);
      const before = acked.epoch === EPOCH ? acked.seq : 0;
      assert.equal(known.acked.seq, Math.max(given.seq, before));
    }),
    { numRuns: 3000 },
  );
});

test('4.8 who comes back without a cursor begins at what is known of it, whatever that meets', () => {
  fc.assert(
    fc.property(cursor, positions, (acked, at) => {
      assert.deepEqual(joinNamed(null, acked, at), { start: acked, acked });
    }),
  );
});

test('4.8 who says where it begins begins there, and what is known of it never goes back (I9)', () => {
  fc.assert(
    fc.property(start, fc.option(cursor), positions, (given, acked, at) => {
      fc.pre(given !== null || acked === null);
      const joined = joinNamed(given, acked, at);
      if (typeof given === 'object' && given !== null) assert.deepEqual(joined.start, given);
      if (given === 'earliest') assert.equal(joined.start, 'earliest');
      if (given === 'latest' || given === null) {
        assert.deepEqual(joined.start, { epoch: EPOCH, seq: at.committed });
      }
      if (acked?.epoch === EPOCH) {
        assert.equal(joined.acked?.epoch, EPOCH);
        assert.ok((joined.acked?.seq ?? -1) >= acked.seq);
      }
    }),
    { numRuns: 3000 },
  );
});

test('4.8 a refused cursor changes nothing; one that is accepted is acknowledged', () => {
  fc.assert(
    fc.property(cursor, fc.option(cursor), positions, (given, acked, at) => {
      const joined = joinNamed(given, acked, at);
      if (classifyResume(given, at).outcome === 'refused') return assert.deepEqual(joined.acked, acked);
      assert.ok((joined.acked?.seq ?? -1) >= given.seq);
    }),
    { numRuns: 3000 },
  );
});

test('4.8 who comes for the first time, and later without a cursor, misses nothing and gets nothing twice (I2)', () => {
  fc.assert(
    fc.property(start, positions, (given, at) => {
      const { start: begin, acked } = joinNamed(given, null, at);
      if (acked === null) return assert.ok(typeof given === 'object' && given !== null);
      // What is known is exactly where it began: the events from there on are those that it is owed.
      if (typeof begin === 'object') assert.deepEqual(begin, acked);
      assert.notEqual(classifyResume(acked, at).outcome, 'refused');
    }),
  );
});
