import assert from 'node:assert/strict';
import { test } from 'node:test';
import { unpack } from 'msgpackr';
import { parseFrames } from '#gapless/core/sse-parse.js';
import { encodePage, type Page } from '#gapless/wire/page.js';
import { frameRun } from '../property/frame-run.js';

const EPOCH = 'abcdefghij';

const page: Page = {
  events: parseFrames(
    frameRun(EPOCH, 9, [
      { type: null, data: '{"a":1}' },
      { type: 'tick', data: 'two\r\nlines "quoted" \u2028 \ufeff\0' },
      { type: 'blob', data: Uint8Array.of(0, 255, 10) },
    ]),
  ),
  epoch: EPOCH,
  next: `${EPOCH}.11`,
  upToDate: true,
  closed: false,
};

const shown = [
  { id: `${EPOCH}.9`, type: 'message', data: '{"a":1}' },
  { id: `${EPOCH}.10`, type: 'tick', data: 'two\nlines "quoted" \u2028 \ufeff\0' },
  { id: `${EPOCH}.11`, type: 'blob', data: 'AP8K', encoding: 'base64' },
];

test('6 a JSON page has the events, where to go on, and whether that is the head and the end', () => {
  const encoded = encodePage('json', page);
  assert.ok(typeof encoded === 'string');
  assert.deepEqual(JSON.parse(encoded), {
    events: shown,
    next: `${EPOCH}.11`,
    upToDate: true,
    closed: false,
  });
});

test('6 an NDJSON page is one event a line, each line ended', () => {
  const encoded = encodePage('ndjson', page);
  assert.ok(typeof encoded === 'string');
  const lines = encoded.split('\n');
  assert.equal(lines.pop(), '');
  assert.deepEqual(
    lines.map((line) => JSON.parse(line)),
    shown,
  );
});

test('6 a MessagePack page has binary data as bytes, without an encoding, in plain maps', () => {
  const encoded = encodePage('msgpack', page);
  assert.ok(encoded instanceof Uint8Array);
  assert.equal(encoded[0], 0x84, 'a map of four');
  const events = [shown[0], shown[1], { id: `${EPOCH}.11`, type: 'blob', data: Buffer.of(0, 255, 10) }];
  assert.deepEqual(unpack(encoded), { events, next: `${EPOCH}.11`, upToDate: true, closed: false });
});

test('6 an encoded MessagePack page is not overwritten by the next one', () => {
  const first = encodePage('msgpack', page);
  const copy = Buffer.from(first as Uint8Array);
  for (let i = 0; i < 100; i++) encodePage('msgpack', { ...page, next: 'x'.repeat(1000) });
  assert.deepEqual(Buffer.from(first as Uint8Array), copy);
});

test('6 a page without events is a page', () => {
  const empty: Page = { ...page, events: [], closed: true };
  assert.equal(encodePage('json', empty), `{"events":[],"next":"${EPOCH}.11","upToDate":true,"closed":true}`);
  assert.equal(encodePage('ndjson', empty), '');
  assert.deepEqual(unpack(encodePage('msgpack', empty) as Uint8Array).events, []);
});
