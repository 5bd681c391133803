import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { parseCursor } from '#gapless/core/cursor.js';
import { classifyResume, earliestCursor, type StreamPositions } from '#gapless/core/resume.js';
import { range } from '../support/cursor.js';

const EPOCH = 'abcdefghij';

/** Any positions that the invariants allow, small enough that every boundary is met. */
const positions: fc.Arbitrary<StreamPositions> = fc.nat(12).chain((committed) =>
  fc.record({
    epoch: fc.constant(EPOCH),
    floor: fc.integer({ min: 1, max: committed + 1 }),
    logFloor: fc.option(fc.integer({ min: 1, max: committed + 1 })),
    committed: fc.constant(committed),
  }),
);

/** The stream as the sets of seqs that ring and log hold, and a resume as looking for each event that is wanted. */
function resumeByLooking(seq: number, at: StreamPositions): string {
  const ring = new Set(range(at.floor, at.committed));
  const log = new Set(at.logFloor === null ? [] : range(at.logFloor, at.committed));
  if (seq > at.committed) return 'ahead_of_head';
  const wanted = range(seq + 1, at.committed);
  if (wanted.length === 0) return 'live';
  if (wanted.every((event) => ring.has(event))) return 'ring';
  return wanted.every((event) => ring.has(event) || log.has(event)) ? 'log' : 'evicted';
}

test('4.4 a resume is decided as by looking for each event that it would need (I2)', () => {
  fc.assert(
    fc.property(positions, fc.nat(15), (at, seq) => {
      const result = classifyResume({ epoch: EPOCH, seq }, at);
      assert.equal(result.outcome === 'refused' ? result.reason : result.outcome, resumeByLooking(seq, at));
    }),
    { numRuns: 5000 },
  );
});

test('4.4 no cursor of another epoch is ever resumed (I3)', () => {
  fc.assert(
    fc.property(positions, fc.nat(15), (at, seq) => {
      assert.deepEqual(classifyResume({ epoch: 'zyxwvutsrq', seq }, at), {
        outcome: 'refused',
        reason: 'epoch_changed',
      });
    }),
  );
});

test('4.4 the earliest cursor is resumed, and the one before it is not', () => {
  fc.assert(
    fc.property(positions, (at) => {
      const earliest = parseCursor(earliestCursor(at));
      assert.ok(earliest !== null);
      assert.notEqual(classifyResume(earliest, at).outcome, 'refused');
      if (earliest.seq === 0) return;
      const before = { epoch: EPOCH, seq: earliest.seq - 1 };
      assert.deepEqual(classifyResume(before, at), { outcome: 'refused', reason: 'evicted' });
    }),
    { numRuns: 1000 },
  );
});
