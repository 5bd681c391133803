import assert from 'node:assert/strict';
import { test } from 'node:test';
import {
  eventFrame,
  FrameBatch,
  HEARTBEAT,
  IdLine,
  idFrame,
  primingFrame,
  retryFrame,
} from '#gapless/core/sse-frame.js';
import { readEventStream } from '../property/whatwg-event-stream.js';

const encoder = new TextEncoder();
const decoder = new TextDecoder();

function framedText(text: string, type: string | null = null): string {
  const batch = new FrameBatch(1 << 20);
  const data = encoder.encode(text);
  batch.pushText(data, 0, data.length, type);
  return decoder.decode(batch.bytes.subarray(0, batch.size));
}

function framedBytes(bytes: readonly number[], type: string | null = null): string {
  const batch = new FrameBatch(1 << 20);
  batch.pushBinary(Uint8Array.from(bytes), 0, bytes.length, type);
  return decoder.decode(batch.bytes.subarray(0, batch.size));
}

test('4.3 one line of text is one data line and the empty line', () => {
  assert.equal(framedText('hello'), 'data: hello\n\n');
});

test('3.1 an empty text is an event with empty data', () => {
  assert.equal(framedText(''), 'data: \n\n');
});

test('3.2 CR, CRLF and LF each break a data line, and once', () => {
  assert.equal(framedText('a\nb'), 'data: a\ndata: b\n\n');
  assert.equal(framedText('a\rb'), 'data: a\ndata: b\n\n');
  assert.equal(framedText('a\r\nb'), 'data: a\ndata: b\n\n');
  assert.equal(framedText('a\n\rb'), 'data: a\ndata: \ndata: b\n\n');
  assert.equal(framedText('a\r\r\nb'), 'data: a\ndata: \ndata: b\n\n');
  assert.equal(framedText('\n'), 'data: \ndata: \n\n');
  assert.equal(framedText('a\r\n'), 'data: a\ndata: \n\n');
  assert.equal(framedText('a\r'), 'data: a\ndata: \n\n');
});

test('3.1 a line break at every place of a text breaks it there', () => {
  const text = 'x'.repeat(37);
  for (const lineBreak of ['\r', '\n', '\r\n']) {
    for (let at = 0; at <= text.length; at++) {
      const broken = framedText(text.slice(0, at) + lineBreak + text.slice(at));
      assert.equal(broken, `data: ${text.slice(0, at)}\ndata: ${text.slice(at)}\n\n`);
    }
  }
});

test('3.1 a CR at the end of a part is a break, whatever stands behind the part', () => {
  const batch = new FrameBatch(1 << 20);
  batch.pushText(encoder.encode('a\r\nb'), 0, 2, null);
  assert.equal(decoder.decode(batch.bytes.subarray(0, batch.size)), 'data: a\ndata: \n\n');
});

test('3.1 other control characters, colons and spaces go through as they are', () => {
  for (const text of [
    '\t',
    '\0',
    '\x0b\x0c',
    ': x',
    ' x',
    'data: x',
    '\ufeffx',
    '\u2028\u0085',
    '\u{1f600}',
  ]) {
    assert.equal(framedText(text), `data: ${text}\n\n`);
  }
});

test('3.2 a type is an event line, unless it is message', () => {
  assert.equal(framedText('x', 'tick'), 'event: tick\ndata: x\n\n');
  assert.equal(framedText('x', 'größe'), 'event: größe\ndata: x\n\n');
  assert.equal(framedText('x', 'é'.repeat(64)), `event: ${'é'.repeat(64)}\ndata: x\n\n`);
  for (const untyped of ['message', '', null]) assert.equal(framedText('x', untyped), 'data: x\n\n');
});

test('3.1 a binary event is base64 on one line, marked so', () => {
  assert.equal(framedBytes([]), 'encoding: base64\ndata: \n\n');
  assert.equal(framedBytes([0]), 'encoding: base64\ndata: AA==\n\n');
  assert.equal(framedBytes([0, 16]), 'encoding: base64\ndata: ABA=\n\n');
  assert.equal(framedBytes([251, 255, 191]), 'encoding: base64\ndata: +/+/\n\n');
  assert.equal(framedBytes([10, 13], 'blob'), 'event: blob\nencoding: base64\ndata: Cg0=\n\n');
});

test('4.3 every line of a frame has a colon', () => {
  for (const frame of [framedText('a\n\n\rb', 't'), framedBytes([1, 2, 3], 't'), framedText('')]) {
    for (const line of frame.slice(0, -2).split('\n')) assert.ok(line.includes(':'), JSON.stringify(line));
  }
});

test('the events of a batch stand back to back, each with its own type', () => {
  const batch = new FrameBatch(1 << 20);
  const data = encoder.encode('one,two,three');
  batch.pushText(data, 0, 3, 'a');
  batch.pushText(data, 4, 7, null);
  batch.pushBinary(data, 8, 13, 'a');
  assert.equal(batch.count, 3);
  assert.equal(batch.size, batch.ends[2]);
  const parts = [0, 1, 2].map((i) =>
    decoder.decode(batch.bytes.subarray(batch.ends[i - 1] ?? 0, batch.ends[i])),
  );
  assert.deepEqual(parts, [
    'event: a\ndata: one\n\n',
    'data: two\n\n',
    'event: a\nencoding: base64\ndata: dGhyZWU=\n\n',
  ]);
});

test('a batch keeps what it holds while it grows, and its own copy of it', () => {
  const batch = new FrameBatch(1 << 20);
  const data = new Uint8Array(100);
  for (let i = 0; i < 1000; i++) batch.pushText(data.fill(97 + (i % 26)), 0, 100, null);
  data.fill(0);
  for (let i = 0; i < 1000; i++) {
    const part = decoder.decode(batch.bytes.subarray(batch.ends[i - 1] ?? 0, batch.ends[i]));
    assert.equal(part, `data: ${String.fromCharCode(97 + (i % 26)).repeat(100)}\n\n`);
  }
});

test('a batch that is reset begins anew', () => {
  const batch = new FrameBatch(1 << 20);
  const data = encoder.encode('xyz');
  batch.pushText(data, 0, 3, 'a');
  batch.reset();
  assert.deepEqual([batch.count, batch.size], [0, 0]);
  batch.pushText(data, 1, 2, 'a');
  assert.equal(decoder.decode(batch.bytes.subarray(0, batch.size)), 'event: a\ndata: y\n\n');
});

test('3.6 a batch never grows over its bound, not even by the frames of line breaks', () => {
  const breaks = new Uint8Array(1000).fill(10);
  const batch = new FrameBatch(5000);
  assert.throws(() => batch.pushText(breaks, 0, breaks.length, null), {
    code: 'event_too_large',
    status: 413,
  });
  assert.ok(batch.bytes.length <= 5000);

  batch.reset();
  batch.pushText(breaks, 0, 500, null);
  assert.equal(batch.count, 1);
  assert.throws(() => batch.pushBinary(new Uint8Array(3000), 0, 3000, null), { code: 'batch_too_large' });
  assert.ok(batch.bytes.length <= 5000);
});

test('4.3 an id line counts up through every change of length', () => {
  const id = new IdLine();
  for (const first of [0, 8, 97, 998, 9_999_998, 999_999_999_998]) {
    id.start('abcdefghij', first);
    for (let seq = first; seq < first + 5; seq++) {
      assert.equal(decoder.decode(id.bytes.subarray(0, id.length)), `id: abcdefghij.${seq}\n`);
      id.next();
    }
  }
});

test('1 an id line reaches 2^53-1 with the longest epoch', () => {
  const id = new IdLine();
  id.start('0123456789abcdef', Number.MAX_SAFE_INTEGER - 1);
  id.next();
  assert.equal(decoder.decode(id.bytes.subarray(0, id.length)), 'id: 0123456789abcdef.9007199254740991\n');
});

test('1 an id line is not started with what is no seq', () => {
  const id = new IdLine();
  for (const seq of [-1, 0.5, 2 ** 53, Number.NaN]) {
    assert.throws(() => id.start('abcdefghij', seq), { name: 'InvariantError' });
  }
});

test('4.2 a retry and a priming frame set the wait and the last id, and dispatch nothing', () => {
  const stream = readEventStream(encoder.encode(retryFrame(2345) + primingFrame('abcdefghij.7')));
  assert.deepEqual(stream, { events: [], lastEventId: 'abcdefghij.7', retryMs: 2345 });
});

test('4.3 a heartbeat is a comment: nothing is taken from it, within a run of frames or alone', () => {
  const frames = idFrame('abcdefghij.1') + HEARTBEAT + framedText('x') + HEARTBEAT;
  assert.deepEqual(readEventStream(encoder.encode(frames)).events, [
    { type: 'message', data: 'x', lastEventId: 'abcdefghij.1' },
  ]);
  for (const line of HEARTBEAT.trimEnd().split('\n')) assert.ok(line.startsWith(':'));
});

test("4.5 the server's event with an id moves the last id, 4.7 without one leaves it", () => {
  const before = idFrame('abcdefghij.41');
  const moved = readEventStream(
    encoder.encode(before + eventFrame('resume_unavailable', '{}', 'abcdefghij.90')),
  );
  assert.deepEqual(moved.events, [{ type: 'resume_unavailable', data: '{}', lastEventId: 'abcdefghij.90' }]);
  const left = readEventStream(encoder.encode(before + eventFrame('stream_closed', 'a\r\nb')));
  assert.deepEqual(left.events, [{ type: 'stream_closed', data: 'a\nb', lastEventId: 'abcdefghij.41' }]);
});
