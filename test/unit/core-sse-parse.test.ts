import assert from 'node:assert/strict';
import { test } from 'node:test';
import { filterFrames, parseFrames } from '#gapless/core/sse-parse.js';
import { frameRun } from '../property/frame-run.js';

const EPOCH = 'abcdefghij';
const encoder = new TextEncoder();
const decoder = new TextDecoder();

const mixed = frameRun(EPOCH, 98, [
  { type: 'tick', data: '1' },
  { type: null, data: 'plain' },
  { type: 'tick', data: 'two\nlines' },
  { type: 'blob', data: Uint8Array.of(1, 2, 3) },
  { type: 'tick', data: '' },
]);

function seqs(frames: Uint8Array): number[] {
  return parseFrames(frames).map(({ seq }) => seq);
}

test('6 frames are read back as the events they were made from', () => {
  const events = parseFrames(mixed).map((event) => ({ ...event, data: decoder.decode(event.data) }));
  assert.deepEqual(events, [
    { seq: 98, type: 'tick', encoding: null, data: '1' },
    { seq: 99, type: null, encoding: null, data: 'plain' },
    { seq: 100, type: 'tick', encoding: null, data: 'two\nlines' },
    { seq: 101, type: 'blob', encoding: 'base64', data: 'AQID' },
    { seq: 102, type: 'tick', encoding: null, data: '' },
  ]);
});

test('6 no frames are no events', () => {
  assert.deepEqual(parseFrames(new Uint8Array(0)), []);
});

test('4.9 a filter keeps the frames of its types, byte for byte', () => {
  assert.deepEqual(seqs(filterFrames(mixed, new Set(['tick'])).frames), [98, 100, 102]);
  assert.deepEqual(seqs(filterFrames(mixed, new Set(['blob', 'tick'])).frames), [98, 100, 101, 102]);
  assert.deepEqual(filterFrames(mixed, new Set(['blob'])).frames, mixed.slice(...frameBounds(101)));
});

test('4.9 a type that begins like the one before it is another type', () => {
  const types = ['tick', 'tic', 'ticker', 'tick', 'tock'];
  const frames = frameRun(
    EPOCH,
    1,
    types.map((type) => ({ type, data: 'x' })),
  );
  assert.deepEqual(
    parseFrames(frames).map(({ type }) => type),
    types,
  );
});

test('4.9 message names the untyped events', () => {
  assert.deepEqual(seqs(filterFrames(mixed, new Set(['message'])).frames), [99]);
});

test('4.9 a filter that nothing passes leaves nothing, one that all pass leaves all', () => {
  assert.equal(filterFrames(mixed, new Set(['tock'])).frames.length, 0);
  assert.equal(filterFrames(mixed, new Set()).frames.length, 0);
  assert.equal(filterFrames(mixed, new Set(['tick', 'blob', 'message'])).frames, mixed);
});

test('4.9 data that looks like a field or a frame does not deceive the filter', () => {
  const frames = frameRun(EPOCH, 1, [
    { type: null, data: `event: tick\n\nid: ${EPOCH}.9\nevent: tick\ndata: x\n\n` },
  ]);
  assert.equal(filterFrames(frames, new Set(['tick'])).frames.length, 0);
  assert.equal(parseFrames(frames).length, 1);
});

test('bytes that are no whole frames of ours are a broken invariant, never half an event', () => {
  const broken = [
    'data: x\n\n',
    `id: ${EPOCH}.1\n\n`,
    `id: ${EPOCH}.1\ndata: x\n`,
    `id: ${EPOCH}.1\ndata: x`,
    `id: ${EPOCH}.1`,
    `id: ${EPOCH}.\ndata: x\n\n`,
    `id: ${EPOCH}.0\ndata: x\n\n`,
    `id: ${EPOCH}.1x\ndata: x\n\n`,
    `id: ${EPOCH}\ndata: x.y\n\n`,
    `id: ${EPOCH}.1\ndata: x\nretry: 5\n\n`,
    ':\n\n',
  ];
  for (const text of broken) {
    assert.throws(() => parseFrames(encoder.encode(text)), { name: 'InvariantError' }, JSON.stringify(text));
    assert.throws(() => filterFrames(encoder.encode(text), new Set(['x'])), { name: 'InvariantError' });
  }
});

test('a run cut anywhere but between two frames is not taken for whole', () => {
  const whole = new Set(
    Array.from({ length: 6 }, (_, i) => (i === 5 ? mixed.length : frameBounds(98 + i)[0])),
  );
  for (let end = 0; end <= mixed.length; end++) {
    if (whole.has(end)) parseFrames(mixed.slice(0, end));
    else assert.throws(() => parseFrames(mixed.slice(0, end)), { name: 'InvariantError' });
  }
});

/** Where the frame of a seq of {@link mixed} begins and ends. */
function frameBounds(seq: number): [start: number, end: number] {
  const text = decoder.decode(mixed);
  const next = text.indexOf(`id: ${EPOCH}.${seq + 1}\n`);
  return [text.indexOf(`id: ${EPOCH}.${seq}\n`), next < 0 ? text.length : next];
}
