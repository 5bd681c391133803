import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { CURSOR_LENGTH_MAX, formatCursor, parseCursor } from '#gapless/core/cursor.js';
import { isStreamName } from '#gapless/core/stream-name.js';
import { epochs, seqs } from './arbitrary.js';

test('1 a cursor that is written is read back as the same position', () => {
  fc.assert(
    fc.property(epochs, seqs, (epoch, seq) => {
      const text = formatCursor(epoch, seq);
      assert.ok(text.length <= CURSOR_LENGTH_MAX);
      assert.deepEqual(parseCursor(text), { epoch, seq });
    }),
    { numRuns: 1000 },
  );
});

test('1 a position has one spelling: what is read is written back letter for letter', () => {
  const nearlyCursors = fc
    .tuple(epochs, fc.string({ unit: fc.constantFrom(...'0019.+-e x'), maxLength: 18 }))
    .map(([epoch, tail]) => `${epoch}.${tail}`);
  fc.assert(
    fc.property(fc.oneof(nearlyCursors, fc.string({ unit: 'binary', maxLength: 40 })), (text) => {
      const cursor = parseCursor(text);
      if (cursor !== null) assert.equal(formatCursor(cursor.epoch, cursor.seq), text);
    }),
    { numRuns: 5000 },
  );
});

test('2.4 a stream name is its own percent-encoding and its own path', () => {
  fc.assert(
    fc.property(fc.string({ unit: 'binary', maxLength: 8 }), (text) => {
      if (!isStreamName(text)) return;
      assert.equal(encodeURIComponent(text), text.replaceAll(':', '%3A'));
      assert.equal(new URL(`http://host/v1/streams/${text}`).pathname, `/v1/streams/${text}`);
    }),
    { numRuns: 5000 },
  );
});
