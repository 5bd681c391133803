import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { SseDecoder, type SseFrame } from '#gapless/client/sse-decoder.js';
import { readEventStream } from './whatwg-event-stream.js';

/** Cut after so many bytes each, over and over. */
function decode(bytes: Uint8Array, pieces: readonly number[]): SseFrame[] {
  const decoder = new SseDecoder();
  const frames: SseFrame[] = [];
  for (let at = 0, i = 0; at < bytes.length; i++) {
    const next = at + (pieces[i % pieces.length] as number);
    frames.push(...decoder.push(bytes.subarray(at, next)));
    at = next;
  }
  return frames;
}

const parts = fc.constantFrom('\n', '\r', '\r\n', '\n\n', 'data: a', 'data', 'event: t', ':', ' ', 'ä€', 'x');
const texts = fc.array(parts, { maxLength: 40 }).map((some) => some.join(''));

test('4.3 any event stream, cut anywhere, is to the client what it is to an EventSource', () => {
  fc.assert(
    fc.property(texts, fc.array(fc.integer({ min: 1, max: 9 }), { minLength: 1 }), (text, pieces) => {
      const bytes = Buffer.from(text);
      const read = decode(bytes, pieces)
        .filter(({ data }) => data !== null)
        .map(({ type, data }) => ({ type: type === '' ? 'message' : type, data }));
      const expected = readEventStream(bytes).events.map(({ type, data }) => ({ type, data }));
      assert.deepEqual(read, expected);
    }),
    { numRuns: 5000 },
  );
});

test('4.3 an event of 64 MiB comes in thousands of pieces, and each is looked at once', () => {
  const line = Buffer.alloc(64 * 1024 * 1024, 'x');
  const [frame] = decode(Buffer.concat([Buffer.from('data: '), line, Buffer.from('\n\n')]), [16_384]);
  assert.equal(frame?.data?.length, line.length);
});
