import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import {
  fingerprintOf,
  formatMultiCursor,
  MULTI_CURSOR_LENGTH_MAX,
  MULTI_STREAMS_MAX,
  parseMultiCursor,
} from '#gapless/core/multi-cursor.js';

const fingerprint = fc.integer({ min: 0, max: 2 ** 48 - 1 });
const seq = fc.oneof(fc.nat(200), fc.maxSafeNat(), fc.constantFrom(0, 127, 128, 2 ** 35 - 1, 2 ** 53 - 1));
const seqs = fc.array(seq, { minLength: 1, maxLength: MULTI_STREAMS_MAX });

test('4.10 a position in several streams comes back as it was, in characters that browsers send as they are', () => {
  fc.assert(
    fc.property(fingerprint, seqs, (of, at) => {
      const text = formatMultiCursor(of, at);
      if (text === null) return assert.ok(at.length > 11, 'eleven streams always fit');
      assert.match(text, /^[A-Za-z0-9._-]{1,127}$/);
      assert.deepEqual(parseMultiCursor(text, at.length), { fingerprint: of, seqs: at });
      assert.equal(parseMultiCursor(text, at.length + 1), null);
    }),
    { numRuns: 3000 },
  );
});

test('4.10 as many streams as there may be fit with 34 thousand million events each', () => {
  const at = new Array<number>(MULTI_STREAMS_MAX).fill(2 ** 35 - 1);
  assert.ok((formatMultiCursor(2 ** 48 - 1, at)?.length ?? 1000) <= MULTI_CURSOR_LENGTH_MAX);
});

test('4.10 one position has one spelling: whatever is read is written the same', () => {
  const character = fc.constantFrom(...'ABMZabmz019-_=+/. m');
  const text = fc.oneof(
    fc.array(character, { maxLength: 40 }).map((characters) => `m${characters.join('')}`),
    fc.string({ maxLength: 130 }),
  );
  fc.assert(
    fc.property(text, fc.integer({ min: 1, max: 5 }), (given, count) => {
      const read = parseMultiCursor(given, count);
      if (read !== null) assert.equal(formatMultiCursor(read.fingerprint, read.seqs), given);
    }),
    { numRuns: 20_000 },
  );
});

test('4.10 other names, other epochs, another order: another fingerprint (I3)', () => {
  const identity = fc.record({
    name: fc.stringMatching(/^[a-c]{1,3}$/),
    epoch: fc.stringMatching(/^[a-c0-2]{8}$/),
  });
  const list = fc.array(identity, { minLength: 1, maxLength: 4 });
  fc.assert(
    fc.property(list, list, (one, other) => {
      const same = JSON.stringify(one) === JSON.stringify(other);
      assert.equal(fingerprintOf(one) === fingerprintOf(other), same);
    }),
    { numRuns: 20_000 },
  );
  const seen = new Set<number>();
  for (let i = 0; i < 200_000; i++) seen.add(fingerprintOf([{ name: 's', epoch: `abcd${100_000 + i}` }]));
  assert.equal(seen.size, 200_000);
});
