import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import fc from 'fast-check';
import { formatCursor, parseCursor, parseCursorOrWord } from '#gapless/core/cursor.js';
import { formatPrefixCursor, parsePrefixCursor } from '#gapless/core/prefix-cursor.js';
import { parseStreamConfig, type StreamConfig } from '#gapless/core/retention.js';
import { isNamePrefix, isStreamName } from '#gapless/core/stream-name.js';
import { negotiate } from '#gapless/transport/http/accept.js';
import { Query } from '#gapless/transport/http/query.js';
import { ACCEPTS, QUERIES, STREAM_CONFIG } from './corpus.js';
import { fuzz } from './fuzz.js';
import { mutate, mutateText, mutations } from './mutation.js';
import { refusal } from './refusal.js';

const CURSORS = ['abcdefghij.0', 'abcdefgh.1', 'abcdefghij234567.9007199254740991', 'earliest', 'latest'];
const PREFIX_CURSORS = ['pabcdefghij0123456789.0', 'p00000000000000000000.9007199254740991'];
const READABLE = ['application/json', 'application/x-ndjson', 'application/msgpack', 'text/event-stream'];
const defaults: StreamConfig = {
  retention: { events: 0, bytes: 1 << 20, ageMs: 0 },
  overflow: 'evict',
  ttlMs: 0,
};

const changed = (texts: readonly string[]) =>
  fc.tuple(fc.constantFrom(...texts), mutations(3)).map(([text, changes]) => mutateText(text, changes));

describe('what stands in the head of a request, changed anywhere', () => {
  it('1 a cursor is read as the contract writes it, or not at all', (context) =>
    fuzz(context, changed(CURSORS), (text) => {
      const [, epoch, digits = ''] = /^([a-z0-9]{8,16})\.(\d+)$/.exec(text) ?? [];
      const isExact = /^(0|[1-9]\d*)$/.test(digits) && BigInt(digits) < 2n ** 53n;
      const cursor = parseCursor(text);
      assert.deepEqual(cursor, epoch !== undefined && isExact ? { epoch, seq: Number(digits) } : null);
      if (cursor !== null) assert.equal(formatCursor(cursor.epoch, cursor.seq), text);
      const isWord = text === 'earliest' || text === 'latest';
      assert.deepEqual(parseCursorOrWord(text), isWord ? text : cursor);
    }));

  it('4.11 an id of a subscription by prefix is read as it is written, or not at all', (context) =>
    fuzz(context, changed(PREFIX_CURSORS), (text) => {
      const [, token, digits = ''] = /^p([a-z0-9]{20})\.(\d+)$/.exec(text) ?? [];
      const isExact = /^(0|[1-9]\d*)$/.test(digits) && BigInt(digits) < 2n ** 53n;
      const cursor = parsePrefixCursor(text);
      assert.deepEqual(cursor, token !== undefined && isExact ? { token, count: Number(digits) } : null);
      if (cursor === null) return;
      assert.equal(formatPrefixCursor(cursor), text);
      assert.equal(parseCursor(text), null, 'nothing is both');
    }));

  it('4.11 a prefix is what a name can begin with', (context) =>
    fuzz(context, changed(['', 'a', '.', 'demo.stream~1:x_y-', 'n'.repeat(200)]), (prefix) => {
      assert.equal(isNamePrefix(prefix), /^[A-Za-z0-9._~:-]{0,200}$/.test(prefix));
      if (isStreamName(prefix)) assert.ok(isNamePrefix(prefix));
    }));

  it('2.4 a name is of the characters that need no encoding', (context) =>
    fuzz(context, changed(['a', 'demo.stream~1:x_y-z', 'n'.repeat(200)]), (name) => {
      const isName = /^[A-Za-z0-9._~:-]{1,200}$/.test(name) && name !== '.' && name !== '..';
      assert.equal(isStreamName(name), isName);
    }));

  it('8 a query is read, or refused', (context) =>
    fuzz(context, changed(QUERIES), (text) => {
      const code = refusal(() => {
        const query = new Query(text);
        query.get('cursor');
        const limit = query.count('limit', { min: 1, max: 1000, absent: 100 });
        assert.ok(Number.isInteger(limit) && limit >= 1 && limit <= 1000);
      });
      assert.ok(code === null || code === 'invalid_query', `${code}`);
    }));

  it('8 of an Accept header one of the types comes out, or none', (context) =>
    fuzz(context, changed(ACCEPTS), (accept) => {
      const type = negotiate(accept, READABLE);
      assert.ok(type === null || READABLE.includes(type));
    }));

  it('2.1 the configuration of a stream is taken whole, or refused with all problems', (context) =>
    fuzz(context, mutations(3), (changes) => {
      let json: unknown;
      try {
        json = JSON.parse(mutate(Buffer.from(STREAM_CONFIG), changes).toString());
      } catch {
        return;
      }
      const code = refusal(() => {
        const { retention, overflow, ttlMs } = parseStreamConfig(json, defaults, 1 << 30);
        for (const count of [retention.events, retention.bytes, retention.ageMs, ttlMs])
          assert.ok(Number.isSafeInteger(count) && count >= 0, `${count}`);
        assert.ok(overflow === 'evict' || overflow === 'reject');
      });
      assert.ok(code === null || code === 'invalid_config', `${code}`);
    }));
});
