import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import fc from 'fast-check';
import { FrameBatch, IdLine } from '#gapless/core/sse-frame.js';
import { messageType, NOTE_TYPES, reachedOf } from '#gapless/mcp/stream/stream-notes.js';
import { mcpRendering } from '#gapless/transport/mcp/mcp-rendering.js';

const EPOCH = 'epoch00000';
const PREFIX = 'stream.mac';

interface Written {
  readonly text: string;
  readonly type: string | null;
}

function framed(written: readonly Written[]): Uint8Array {
  const batch = new FrameBatch(1024 * 1024);
  const id = new IdLine();
  const parts: Uint8Array[] = [];
  for (const [index, { text, type }] of written.entries()) {
    const start = batch.size;
    const bytes = Buffer.from(text);
    batch.pushText(bytes, 0, bytes.length, type);
    id.start(EPOCH, index + 1);
    parts.push(id.bytes.slice(0, id.length), batch.bytes.slice(start, batch.size));
  }
  return Buffer.concat(parts);
}

const message = fc.record({
  text: fc.json(),
  reached: fc.option(fc.stringMatching(/^[!-~äöü🙂 ]{1,120}$/u)),
});
const note = fc.record({ text: fc.json(), type: fc.constantFrom(...Object.values(NOTE_TYPES)) });

describe('what stands in a stream of MCP beside its messages', () => {
  it('is shown to no reader: messages come with their ids, as if there were nothing else', () => {
    fc.assert(
      fc.property(fc.array(fc.oneof(message, note), { maxLength: 30 }), (events) => {
        const written = events.map((event) =>
          'type' in event ? event : { text: event.text, type: messageType(event.reached) },
        );
        const expected = events.flatMap((event, index) =>
          'type' in event ? [] : [`id: ${PREFIX}.${index + 1}\nevent: message\ndata: ${event.text}\n\n`],
        );
        const { frames, count } = mcpRendering(PREFIX).render(framed(written), EPOCH);
        assert.equal(Buffer.from(frames).toString(), expected.join(''));
        assert.equal(count, expected.length);
      }),
    );
  });

  it('says where the server can be taken up, or nothing where that does not fit', () => {
    fc.assert(
      fc.property(fc.string({ maxLength: 200 }), (reached) => {
        const type = messageType(reached);
        assert.ok(type === null || reachedOf(type) === reached);
      }),
    );
    assert.equal(messageType(null), null);
    assert.equal(messageType('x'.repeat(1000)), null);
    for (const type of [null, 'endpoint', ...Object.values(NOTE_TYPES)]) assert.equal(reachedOf(type), null);
  });
});
