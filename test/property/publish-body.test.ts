import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { Packr } from 'msgpackr';
import { FrameBatch } from '#gapless/core/sse-frame.js';
import { parseFrames } from '#gapless/core/sse-parse.js';
import { RequestError } from '#gapless/errors.js';
import { decodePublish } from '#gapless/wire/publish-body.js';
import { eventTypes, texts } from './arbitrary.js';
import { asRead, joinFrames } from './frame-run.js';

const JSON_BATCH = 'application/vnd.gapless.batch+json';
const MSGPACK = 'application/msgpack';

const limits = { eventBytesMax: 1 << 20, batchEventsMax: 1000 };
const batch = new FrameBatch(1 << 24);
const packr = new Packr({ useRecords: false });

interface Decoded {
  readonly type: string | null;
  readonly data: string;
}

function publish(contentType: string, body: Uint8Array): Decoded[] {
  decodePublish(contentType, body, null, limits, batch);
  return parseFrames(joinFrames('abcdefghij', 1, batch)).map(({ type, data }) => ({
    type,
    data: Buffer.from(data).toString(),
  }));
}

/** The events of a body, or the code it was refused with. Any other error is one of ours. */
function outcome(contentType: string, body: Uint8Array): Decoded[] | string {
  try {
    return publish(contentType, body);
  } catch (error) {
    if (error instanceof RequestError && error.status < 500) return error.code;
    throw error;
  }
}

const batches = fc.array(
  fc.record(
    { type: eventTypes.filter((type) => type !== null), data: fc.oneof(texts, fc.jsonValue()) },
    { requiredKeys: ['data'], noNullPrototype: true },
  ),
  { minLength: 1, maxLength: 5 },
);

function expected({ type, data }: { type?: string; data: unknown }): Decoded {
  return {
    type: type === undefined || type === '' || type === 'message' ? null : type,
    data: typeof data === 'string' ? asRead(data) : JSON.stringify(data),
  };
}

test('3.1 a JSON batch gives the events that JSON.parse would have given', () => {
  fc.assert(
    fc.property(batches, fc.constantFrom(0, 1, '\t'), (events, indent) => {
      const decoded = publish(JSON_BATCH, Buffer.from(JSON.stringify(events, null, indent)));
      assert.deepEqual(decoded.map(compactData), events.map(expected).map(compactData));
    }),
    { numRuns: 1000 },
  );
});

/** Data that is not a string is passed on with the white space it has. */
function compactData({ type, data }: Decoded): Decoded {
  try {
    return { type, data: JSON.stringify(JSON.parse(data)) };
  } catch {
    return { type, data };
  }
}

test('3.1 a MessagePack batch gives the events that were packed', () => {
  fc.assert(
    fc.property(batches, (events) => {
      assert.deepEqual(publish(MSGPACK, packr.pack(events)), events.map(expected));
    }),
    { numRuns: 1000 },
  );
});

test('3.1 text and bytes published alone are read back as they were', () => {
  fc.assert(
    fc.property(texts, fc.uint8Array(), (text, bytes) => {
      assert.deepEqual(publish('text/plain', Buffer.from(text)), [{ type: null, data: asRead(text) }]);
      assert.equal(
        publish('application/octet-stream', bytes)[0]?.data,
        Buffer.from(bytes).toString('base64'),
      );
    }),
    { numRuns: 1000 },
  );
});

test('3.1 NDJSON has an event for each line that is not blank', () => {
  fc.assert(
    fc.property(fc.array(texts, { maxLength: 6 }), (pieces) => {
      const text = pieces.join('\n');
      const lines = text.split('\n').map((line) => line.replace(/\r$/, ''));
      const data = lines.filter((line) => !/^[ \t\r]*$/.test(line)).map(asRead);
      const result = outcome('application/x-ndjson', Buffer.from(text));
      assert.deepEqual(
        result,
        data.length === 0 ? 'empty_batch' : data.map((line) => ({ type: null, data: line })),
      );
    }),
    { numRuns: 2000 },
  );
});

/** A valid body with a few bytes changed, taken out or cut off. */
function damaged(bodies: fc.Arbitrary<Uint8Array>): fc.Arbitrary<Uint8Array> {
  const damages = fc.array(
    fc.tuple(
      fc.nat(),
      fc.constantFrom('set', 'remove', 'cut'),
      fc.oneof(fc.nat(255), fc.constantFrom(...'[]{},:"\\ ')),
    ),
    { minLength: 1, maxLength: 3 },
  );
  return fc.tuple(bodies, damages).map(([body, list]) => {
    const bytes = [...body];
    for (const [at, kind, value] of list) {
      const index = bytes.length === 0 ? 0 : at % bytes.length;
      if (kind === 'cut') bytes.length = index;
      else if (kind === 'remove') bytes.splice(index, 1);
      else bytes[index] = typeof value === 'number' ? value : value.charCodeAt(0);
    }
    return Uint8Array.from(bytes);
  });
}

const jsonBodies = batches.map((events) => new Uint8Array(Buffer.from(JSON.stringify(events))));
const packedBodies = batches.map((events) => new Uint8Array(packr.pack(events)));

test('3.1 a damaged JSON batch is accepted just when JSON.parse reads events from it', () => {
  fc.assert(
    fc.property(damaged(jsonBodies), (body) => {
      const isAccepted = Array.isArray(outcome(JSON_BATCH, body));
      if (isAccepted) assert.ok(isBatch(body));
      else if (isBatch(body))
        assert.match(
          String(outcome(JSON_BATCH, body)),
          namesTwice(body) ? /^invalid_(body|utf8|event_type)$/ : /^invalid_(utf8|event_type)$/,
        );
    }),
    { numRuns: 5000 },
  );
});

function isBatch(body: Uint8Array): boolean {
  let json: unknown;
  try {
    json = JSON.parse(new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(body));
  } catch {
    return false;
  }
  return Array.isArray(json) && json.length > 0 && json.every(isEvent);
}

/** Whether more members are named in a batch than it has, of which JSON.parse keeps the last. */
function namesTwice(body: Uint8Array): boolean {
  const text = Buffer.from(body).toString();
  const events = JSON.parse(text) as object[];
  const named = text.match(/"(data|type)"\s*:/g) ?? [];
  return named.length > events.flatMap(Object.keys).length;
}

function isEvent(json: unknown): boolean {
  if (typeof json !== 'object' || json === null || Array.isArray(json) || !('data' in json)) return false;
  const { type = '' } = json as { type?: unknown };
  return typeof type === 'string' && Object.keys(json).every((name) => name === 'type' || name === 'data');
}

test('3.1 a body of any bytes is events or a clear refusal, never a failure of ours', () => {
  const headers = fc.constantFrom(0x91, 0x81, 0xdd, 0xdf, 0xc4, 0xdb, 0xa4, 0xd4, 0xcf, 0xcb);
  const hostile = fc.oneof(
    fc.uint8Array({ maxLength: 64 }),
    fc.array(fc.oneof(headers, fc.nat(255)), { maxLength: 64 }).map((bytes) => Uint8Array.from(bytes)),
    damaged(packedBodies),
    damaged(jsonBodies),
  );
  fc.assert(
    fc.property(
      hostile,
      fc.constantFrom(MSGPACK, JSON_BATCH, 'application/x-ndjson', 'text/plain'),
      (body, type) => {
        outcome(type, body);
      },
    ),
    { numRuns: 10_000 },
  );
});
