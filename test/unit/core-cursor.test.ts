import assert from 'node:assert/strict';
import { test } from 'node:test';
import { formatCursor, parseCursor, parseCursorOrWord } from '#gapless/core/cursor.js';
import { EPOCH_LENGTH, makeEpoch } from '#gapless/core/epoch.js';

const EPOCH = 'abcdefghij';

test('1 a cursor is an epoch of 8 to 16 characters, a dot and a decimal seq', () => {
  assert.deepEqual(parseCursor('abcdefgh.0'), { epoch: 'abcdefgh', seq: 0 });
  assert.deepEqual(parseCursor('0123456789abcdef.42'), { epoch: '0123456789abcdef', seq: 42 });
  assert.deepEqual(parseCursor(`${EPOCH}.9007199254740991`), { epoch: EPOCH, seq: Number.MAX_SAFE_INTEGER });
});

const malformed: readonly (readonly [why: string, text: string])[] = [
  ['nothing', ''],
  ['no seq', EPOCH],
  ['an empty seq', `${EPOCH}.`],
  ['no epoch', '.5'],
  ['a bare seq', '5'],
  ['an epoch of 7', 'abcdefg.5'],
  ['an epoch of 17', 'abcdefghijklmnopq.5'],
  ['capitals in the epoch', 'ABCDEFGHIJ.5'],
  ['a dash in the epoch', 'abcd-efghij.5'],
  ['a letter outside ASCII', 'abcdefghiĵ.5'],
  ['a plus sign', `${EPOCH}.+5`],
  ['a minus sign', `${EPOCH}.-5`],
  ['a minus zero', `${EPOCH}.-0`],
  ['a leading zero', `${EPOCH}.05`],
  ['two zeros', `${EPOCH}.00`],
  ['an exponent', `${EPOCH}.1e3`],
  ['a fraction', `${EPOCH}.1.5`],
  ['hexadecimal', `${EPOCH}.0x1f`],
  ['digits of another script', `${EPOCH}.٣`],
  ['infinity', `${EPOCH}.Infinity`],
  ['a leading space', ` ${EPOCH}.5`],
  ['a trailing space', `${EPOCH}.5 `],
  ['a trailing line feed', `${EPOCH}.5\n`],
  ['a NUL', `${EPOCH}.5\0`],
  ['a comma list', `${EPOCH}.5,${EPOCH}.6`],
  ['2^53', `${EPOCH}.9007199254740992`],
  ['a 16-digit seq that rounds to 2^53', `${EPOCH}.9007199254740993`],
  ['17 digits', `${EPOCH}.10000000000000000`],
  ['a megabyte of digits', `${EPOCH}.${'9'.repeat(1 << 20)}`],
  ['a megabyte of epoch', `${'a'.repeat(1 << 20)}.1`],
];

for (const [why, text] of malformed) {
  test(`1 ${why} is malformed, not guessed at`, () => {
    assert.equal(parseCursor(text), null);
    assert.equal(parseCursorOrWord(text), null);
  });
}

test('4.1 earliest and latest are words, exactly so spelled', () => {
  assert.equal(parseCursorOrWord('earliest'), 'earliest');
  assert.equal(parseCursorOrWord('latest'), 'latest');
  assert.deepEqual(parseCursorOrWord(`${EPOCH}.7`), { epoch: EPOCH, seq: 7 });
  for (const text of ['Earliest', 'LATEST', 'latest ', 'first', '$'])
    assert.equal(parseCursorOrWord(text), null);
  assert.equal(parseCursor('earliest'), null);
});

test('1 a formatted cursor uses only characters that need no CORS preflight', () => {
  assert.match(formatCursor(EPOCH, Number.MAX_SAFE_INTEGER), /^[A-Za-z0-9._-]{1,127}$/);
});

test('1 an epoch is 10 of a-z and 0-9 and makes a readable cursor', () => {
  for (let byte = 0; byte < 256; byte++) {
    const epoch = makeEpoch(new Uint8Array(EPOCH_LENGTH).fill(byte));
    assert.match(epoch, /^[a-z0-9]{10}$/);
    assert.deepEqual(parseCursor(formatCursor(epoch, 1)), { epoch, seq: 1 });
  }
});

test('1 an epoch takes 5 bits from each of its 10 bytes, each character equally often', () => {
  const seen = new Map<string, number>();
  for (let byte = 0; byte < 256; byte++) {
    const last = makeEpoch(Uint8Array.of(0, 0, 0, 0, 0, 0, 0, 0, 0, byte)).charAt(9);
    seen.set(last, (seen.get(last) ?? 0) + 1);
  }
  assert.equal(seen.size, 32);
  assert.deepEqual(new Set(seen.values()), new Set([8]));
});

test('an epoch is not made from too few random bytes', () => {
  assert.throws(() => makeEpoch(new Uint8Array(EPOCH_LENGTH - 1)), { name: 'InvariantError' });
});
