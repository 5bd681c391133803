import assert from 'node:assert/strict';
import { test } from 'node:test';
import { unpack } from 'msgpackr';
import type { Rendering } from '#gapless/broker/rendering.js';
import { encodeEvents, encodeMessage } from '#gapless/wire/live-message.js';
import { FakeSink } from './broker-fake-sink.js';
import { BrokerStage } from './broker-stage.js';

/** Says what it was given, under a name, and counts how often it is asked. */
function counting(key: string): { rendering: Rendering; asked: () => number } {
  let asked = 0;
  const render = (frames: Uint8Array, epoch: string) => {
    asked++;
    return { frames: Buffer.from(`${key} ${epoch} ${Buffer.from(frames)}`), count: 1 };
  };
  return { rendering: { key, filters: false, render }, asked: () => asked };
}

test('a run is rendered once for all who want the same, and not at all for those who take it as it is', () => {
  const { edge } = new BrokerStage();
  const stream = edge.stream('s');
  const { rendering, asked } = counting('other');
  const others = [1, 2, 3].map(() => edge.subscribe(stream, { rendering }));
  const plain = edge.subscribe(stream);
  edge.publish(stream, 'x');
  edge.turns();
  assert.equal(asked(), 1);
  const frames = `id: ${stream.epoch}.1\ndata: x\n\n`;
  for (const { sink } of others) assert.deepEqual(sink.writes, [`other ${stream.epoch} ${frames}`]);
  assert.deepEqual(plain.sink.writes, [frames]);
});

test('however many renderings there are, each subscriber gets its own', () => {
  const { edge } = new BrokerStage();
  const stream = edge.stream('s');
  const keys = Array.from({ length: 50 }, (_, i) => `rendering ${i}`);
  const subscribers = [...keys, ...keys].map((key) => ({
    key,
    sink: edge.subscribe(stream, { rendering: counting(key).rendering }).sink,
  }));
  edge.publish(stream, 'x');
  edge.turns();
  for (const { key, sink } of subscribers) assert.ok(sink.writes[0]?.startsWith(`${key} `));
});

test('5.4 a sink that wants signs of life under load gets them, with the cursor', () => {
  const { edge } = new BrokerStage();
  const stream = edge.stream('s');
  const sink = new FakeSink();
  sink.beats = 'always';
  const beats: string[] = [];
  sink.beat = (cursor) => {
    beats.push(cursor);
    return true;
  };
  edge.subscribe(stream, { sink });
  for (let i = 0; i < 40; i++) {
    edge.publish(stream, 'x');
    edge.turns();
    edge.ticks(1);
  }
  assert.ok(beats.length >= 3 && beats.length <= 10, `${beats.length} beats`);
  const seqs = beats.map((cursor) => Number(cursor.split('.')[1]));
  assert.deepEqual(
    seqs,
    seqs.toSorted((a, b) => a - b),
  );
});

test('5.2 events of a run as a message: all, those of some types, none', () => {
  const frames = Buffer.from('id: e.1\ndata: a\n\nid: e.2\nevent: t\nencoding: base64\ndata: AP8=\n\n');
  const json = (types: ReadonlySet<string> | null) => encodeEvents('json', frames, 'e', types);
  const first = { id: 'e.1', type: 'message', data: 'a' };
  const second = { id: 'e.2', type: 't', data: 'AP8=', encoding: 'base64' };
  assert.deepEqual(JSON.parse(Buffer.from(json(null).frames).toString()), {
    kind: 'events',
    events: [first, second],
  });
  assert.deepEqual(JSON.parse(Buffer.from(json(new Set(['t'])).frames).toString()).events, [second]);
  assert.deepEqual([json(new Set(['else'])).frames.length, json(new Set(['else'])).count], [0, 0]);
  assert.deepEqual(unpack(Buffer.from(encodeEvents('msgpack', frames, 'e', null).frames)).events[1], {
    id: 'e.2',
    type: 't',
    data: Buffer.from([0, 255]),
  });
  assert.deepEqual(unpack(Buffer.from(encodeMessage('msgpack', { kind: 'closed', cursor: 'e.2' }))), {
    kind: 'closed',
    cursor: 'e.2',
  });
});
