import assert from 'node:assert/strict';
import { isUtf8 } from 'node:buffer';
import { describe, it } from 'node:test';
import fc from 'fast-check';
import { FrameBatch } from '#gapless/core/sse-frame.js';
import { parseFrames } from '#gapless/core/sse-parse.js';
import { decodePublish } from '#gapless/wire/publish-body.js';
import { joinFrames } from '../property/frame-run.js';
import { BODIES, CONTENT_TYPES } from './corpus.js';
import { fuzz } from './fuzz.js';
import { mutate, mutateText, mutations } from './mutation.js';
import { refusal } from './refusal.js';

const BODY_BYTES_MAX = 64 * 1024;
const limits = { eventBytesMax: 4096, batchEventsMax: 64 };
const batch = new FrameBatch(1 << 20);

/** Decodes; what is taken must be whole frames of UTF-8 lines that read back, and what is not, refused by the table. */
function check(contentType: string, body: Uint8Array, eventType: string | null): void {
  const refused = refusal(() => decodePublish(contentType, body, eventType, limits, batch));
  if (refused !== null) return;
  assert.ok(batch.count >= 1 && batch.count <= limits.batchEventsMax);
  const run = joinFrames('abcdefghij', 1, batch);
  assert.ok(isUtf8(run), 'a frame is not UTF-8');
  const text = Buffer.from(run).toString();
  for (const line of text.split('\n'))
    assert.ok(line === '' || line.includes(':'), `a line without a colon: ${line}`);
  assert.ok(!/[\r\0]/.test(text.replace(/^data:.*$/gm, '')), 'a break in a field');
  assert.equal(parseFrames(run).length, batch.count);
}

describe('bodies of publishes, changed anywhere', () => {
  for (const [type, body] of BODIES) {
    it(`3.1 ${type || 'no type'}: is taken as whole frames, or refused with a code of the table`, (context) =>
      fuzz(context, mutations(4), (changes) => {
        const changed = mutate(body, changes);
        assert.ok(changed.length < BODY_BYTES_MAX);
        check(type, changed, null);
      }));
  }

  it('3.1 any bytes, types of content and types of events', (context) => {
    const texts = fc.oneof(fc.string({ maxLength: 160 }), fc.string({ unit: 'binary', maxLength: 40 }));
    const types = fc
      .tuple(fc.constantFrom(...CONTENT_TYPES), mutations(2))
      .map(([type, changes]) => mutateText(type, changes));
    const inputs = fc.tuple(types, fc.uint8Array({ maxLength: 200 }), fc.option(texts));
    return fuzz(context, inputs, ([contentType, body, eventType]) => check(contentType, body, eventType));
  });
});
