import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import fc from 'fast-check';
import { eventType, isOfStream, parseEventId, requestOfType } from '#gapless/mcp-sdk/event-id.js';

const streamIds = fc.oneof(fc.uuid(), fc.constant('_GET_stream'), fc.stringMatching(/^[\x21-\x7e]{1,40}$/));
const requestIds = fc.oneof(
  fc.maxSafeInteger(),
  fc.string({ unit: 'binary', maxLength: 20 }).filter((text) => text.isWellFormed()),
  fc.constant(undefined),
);
const cursors = fc.tuple(fc.stringMatching(/^[a-z0-9]{8,16}$/), fc.nat()).map((parts) => parts.join('.'));

describe('ids of a session’s events', () => {
  it('give back what they were made of', () => {
    fc.assert(
      fc.property(streamIds, requestIds, cursors, (streamId, requestId, cursor) => {
        const type = eventType(streamId, requestId);
        const named = type.endsWith('.') ? undefined : requestId;
        assert.deepEqual(parseEventId(`${type}.${cursor}`), { streamId, requestId: named, cursor });
        assert.equal(requestOfType(type), named);
        assert.ok(isOfStream(type, streamId));
      }),
    );
  });

  it('are of one stream only', () => {
    assert.ok(!isOfStream(eventType('a.b', 1), 'a'));
    assert.ok(!isOfStream(eventType('a', 1), 'a.MQ'));
    assert.ok(!isOfStream(eventType('ab', 1), 'a'));
  });

  it('leave out a request whose name would not fit, and never the stream', () => {
    const type = eventType('b'.repeat(36), 'x'.repeat(200));
    assert.equal(type, `${'b'.repeat(36)}.`);
    assert.ok(Buffer.byteLength(eventType('b'.repeat(100), 123456789)) <= 128);
  });

  it('are not made of a stream that cannot stand in a header', () => {
    assert.throws(() => eventType('two words', 1), TypeError);
    assert.throws(() => eventType('', 1), TypeError);
  });

  it('are told from anything else', () => {
    for (const text of [
      '',
      'x',
      'a.b',
      'a.MQ.end',
      'a.MQ.abcdefgh.-1',
      'a.MQ.abcdefgh.1 ',
      '.MQ.abcdefgh.1',
    ]) {
      assert.equal(parseEventId(text), null, text);
    }
    // What a client made up as a request names none.
    assert.equal(parseEventId('a.%%.abcdefgh.1'), null);
    assert.equal(parseEventId('a.____.abcdefgh.1')?.requestId, undefined);
  });
});
