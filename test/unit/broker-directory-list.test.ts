import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { StreamRef } from '#gapless/broker/edge-stream.js';
import { NO_JOURNAL } from '#gapless/broker/journal.js';
import { mergeReaders, type ReaderState } from '#gapless/broker/readers.js';
import { BrokerStage } from './broker-stage.js';

test('2.2 a list says nothing of a stream whose creation a crash may undo, and counts it for no limit', () => {
  const uncommitted = new Set<string>();
  const journal = { ...NO_JOURNAL, hasCreated: ({ name }: StreamRef) => !uncommitted.has(name) };
  const stage = new BrokerStage({ streamsMax: 8, journal });
  for (const name of ['a', 'b', 'c', 'd']) stage.directory.put(name, undefined);
  const names = (after: string, limit: number) =>
    stage.directory.list({ prefix: '', after, limit }).map(({ ref }) => ref.name);
  uncommitted.add('b').add('d');
  assert.deepEqual(names('', 2), ['a', 'c']);
  assert.deepEqual(names('a', 2), ['c']);
  uncommitted.clear();
  assert.deepEqual(names('', 9), ['a', 'b', 'c', 'd']);
});

test('2.5 readers of several edges are told as of one: those furthest behind first, and all counted', () => {
  const reader = (delivered: number): ReaderState => ({
    by: 'sse',
    state: 'ready',
    written: delivered,
    delivered,
    principal: '',
  });
  const parts = [
    { readers: [reader(3), reader(9)], count: 20 },
    { readers: [], count: 0 },
    { readers: [reader(1), reader(4)], count: 2 },
  ];
  const { readers, count } = mergeReaders(parts, 3);
  assert.deepEqual(
    readers.map(({ delivered }) => delivered),
    [1, 3, 4],
  );
  assert.equal(count, 22);
});

test('2.5 of many readers on one edge those furthest behind are told, and all are counted', () => {
  const stage = new BrokerStage();
  const { edge } = stage;
  const stream = edge.stream('s');
  const slow = edge.subscribe(stream);
  slow.sink.takes = false;
  for (let i = 0; i < 40; i++) edge.subscribe(stream);
  edge.publish(stream, '1');
  stage.settle();
  edge.publish(stream, '2', '3');
  stage.settle();
  const { slowest, count } = edge.broker.readers('s', stream.epoch, 2);
  assert.equal(count, 41);
  assert.deepEqual(
    slowest.map(({ delivered }) => delivered),
    [0, 3],
  );
  assert.equal(edge.broker.readers('s', 'another000', 2).count, 0);
  assert.equal(edge.broker.readers('absent', stream.epoch, 2).count, 0);
  assert.deepEqual(edge.broker.lags(['absent', 's']), [{ name: 's', subscribers: 41, lagMax: 3 }]);
});
