import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { formatSize, formatTime, parseSize, parseTime } from '#gapless/config/units.js';

const amounts = fc.integer({ min: 0, max: 10 ** 14 });

test('a size that was formatted reads back as the same bytes', () => {
  fc.assert(fc.property(amounts, (bytes) => assert.equal(parseSize(formatSize(bytes)), bytes)));
});

test('a time that was formatted reads back as the same milliseconds', () => {
  fc.assert(fc.property(amounts, (ms) => assert.equal(parseTime(formatTime(ms)), ms)));
});

test('a size is bytes, or counts KiB, MiB or GiB', () => {
  assert.equal(parseSize('4096'), 4096);
  assert.equal(parseSize('64KiB'), 65_536);
  assert.equal(parseSize('256MiB'), 268_435_456);
  assert.equal(parseSize('1GiB'), 1_073_741_824);
});

test('a time is milliseconds, or counts s, m, h or d', () => {
  assert.equal(parseTime('250'), 250);
  assert.equal(parseTime('250ms'), 250);
  assert.equal(parseTime('5s'), 5000);
  assert.equal(parseTime('15m'), 900_000);
  assert.equal(parseTime('1h'), 3_600_000);
  assert.equal(parseTime('7d'), 604_800_000);
});

test('the shortest exact form is shown', () => {
  assert.deepEqual([0, 1023, 1024, 1536, 1024 ** 3].map(formatSize), ['0', '1023', '1KiB', '1536', '1GiB']);
  assert.deepEqual([0, 10, 1500, 60_000, 90_000].map(formatTime), ['0', '10ms', '1500ms', '1m', '90s']);
});

for (const text of [
  '',
  ' ',
  '-1',
  '1.5MiB',
  '64 KiB',
  '64kib',
  '64MB',
  'MiB',
  '1e3',
  '0x10',
  '9'.repeat(16),
  '1constructor',
]) {
  test(`${JSON.stringify(text)} is neither a size nor a time`, () => {
    assert.equal(parseSize(text), undefined);
    assert.equal(parseTime(text), undefined);
  });
}
