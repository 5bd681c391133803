import assert from 'node:assert/strict';
import { type TestContext, test } from 'node:test';
import { Counter } from '#gapless/ring/counters.js';
import { RingReader } from '#gapless/ring/read.js';
import { range } from '../support/cursor.js';
import { FakeSink } from './broker-fake-sink.js';
import { BrokerStage, type Subscriber } from './broker-stage.js';

/** Counts the copies out of the rings from here on. */
function countReads(context: TestContext): () => number {
  const read = context.mock.method(RingReader.prototype, 'read');
  return () => read.mock.callCount();
}

function numbered(from: number, to: number): string[] {
  return Array.from({ length: to - from + 1 }, (_, i) => String(from + i));
}

test('I1 everybody gets what comes after their own cursor, whole, once and in order', () => {
  const { edge } = new BrokerStage();
  const stream = edge.stream('s');
  edge.publish(stream, ...numbered(1, 10));
  const subscribers = range(0, 10).map((cursor) => edge.subscribe(stream, { cursor }));
  edge.turns();
  edge.publish(stream, ...numbered(11, 12));
  edge.turns();
  for (const [cursor, { sink, subscription }] of subscribers.entries()) {
    assert.deepEqual(sink.seqs, range(cursor + 1, 12));
    assert.deepEqual(sink.texts, numbered(cursor + 1, 12));
    assert.deepEqual([subscription.cursor, subscription.delivered], [12, 12]);
  }
});

test('a subscriber that joins live gets only what is published from then on', () => {
  const { edge } = new BrokerStage();
  const stream = edge.stream('s');
  edge.publish(stream, '1', '2');
  const { sink } = edge.subscribe(stream);
  edge.publish(stream, '3');
  edge.turns();
  assert.deepEqual(sink.seqs, [3]);
});

test('a resume gets its first run at once, and a live join nothing', () => {
  const { edge } = new BrokerStage({ writeBytesMax: 1000 });
  const stream = edge.stream('s');
  edge.turns();
  for (let i = 0; i < 6; i++) edge.publish(stream, 'x'.repeat(270));
  const [resumed, live] = [edge.subscribe(stream, { cursor: 1 }), edge.subscribe(stream)];
  assert.deepEqual([resumed.sink.seqs, live.sink.writes], [[2, 3, 4], []]);
  edge.turns();
  assert.deepEqual([resumed.sink.seqs, live.sink.writes], [[2, 3, 4, 5, 6], []]);
});

test('events of one turn go out as one write', () => {
  const { edge } = new BrokerStage();
  const stream = edge.stream('s');
  const { sink } = edge.subscribe(stream);
  for (const text of numbered(1, 20)) edge.publish(stream, text);
  edge.turns();
  assert.deepEqual([sink.writes.length, sink.seqs.length], [1, 20]);
});

test('a backlog goes out in runs that are no larger than one write may be', () => {
  const { edge } = new BrokerStage({ writeBytesMax: 1000 });
  const stream = edge.stream('s');
  for (let i = 0; i < 30; i++) edge.publish(stream, 'x'.repeat(270));
  edge.publish(stream, 'y'.repeat(5000));
  const { sink } = edge.subscribe(stream, { cursor: 0 });
  edge.turns();
  assert.deepEqual(sink.seqs, range(1, 31));
  assert.deepEqual(
    sink.writes.map((write) => write.length <= 1000),
    [...Array(10).fill(true), false],
    'the one event that is larger goes alone',
  );
});

test('the cursor moves by what was written, and no further than the socket lets it (I7)', () => {
  const { edge } = new BrokerStage({ writeBytesMax: 1000 });
  const stream = edge.stream('s');
  for (let i = 0; i < 9; i++) edge.publish(stream, 'x'.repeat(270));
  const sink = new FakeSink();
  sink.takes = false;
  const slow = edge.subscribe(stream, { cursor: 0, sink });
  edge.turns();
  assert.deepEqual([slow.subscription.cursor, slow.subscription.state], [3, 'stalled']);
  edge.publish(stream, 'more');
  edge.ticks(100);
  assert.deepEqual([slow.sink.writes.length, slow.subscription.cursor], [1, 3]);
  edge.drained(slow);
  edge.turns();
  assert.deepEqual([slow.sink.writes.length, slow.subscription.cursor], [3, 10]);
  assert.deepEqual(slow.sink.seqs, range(1, 10));
  assert.equal(edge.counters.get(Counter.stalls), 1);
});

test('delivered follows what the socket says has left the process, and never runs ahead of it', () => {
  const { edge } = new BrokerStage({ writeBytesMax: 1000 });
  const stream = edge.stream('s');
  for (let i = 0; i < 6; i++) edge.publish(stream, 'x'.repeat(270));
  const subscriber = edge.subscribeHeld(stream, { cursor: 0 });
  const { sink, subscription } = subscriber;
  const delivered: number[] = [];
  sink.onWrite = () => {
    delivered.push(subscription.delivered);
    sink.takes = sink.writes.length !== 2;
  };
  edge.drained(subscriber);
  edge.turns();
  assert.deepEqual(delivered, [0, 3], 'the second write was not taken whole');
  assert.deepEqual([subscription.delivered, subscription.cursor], [3, 6]);
  edge.drained(subscriber);
  assert.equal(subscription.delivered, 6);
});

test('what was not taken before the subscription began holds it back as well', () => {
  const { edge } = new BrokerStage();
  const stream = edge.stream('s');
  edge.publish(stream, '1');
  const subscriber = edge.subscribeHeld(stream, { cursor: 0 });
  edge.turns();
  assert.deepEqual(subscriber.sink.writes, []);
  edge.drained(subscriber);
  edge.turns();
  assert.deepEqual(subscriber.sink.seqs, [1]);
});

test('a drain that nobody waits for changes nothing', () => {
  const { edge } = new BrokerStage();
  const stream = edge.stream('s');
  const subscriber = edge.subscribe(stream);
  edge.turns();
  edge.drained(subscriber);
  edge.broker.unsubscribe(subscriber.subscription);
  edge.drained(subscriber);
  edge.broker.unsubscribe(subscriber.subscription);
  edge.publish(stream, '1');
  edge.turns();
  assert.deepEqual(subscriber.sink.writes, []);
  assert.equal(edge.broker.subscriberCount, 0);
});

test('a run is copied out once for everybody who stands at its beginning', (context) => {
  const { edge } = new BrokerStage();
  const stream = edge.stream('s');
  edge.publish(stream, '1', '2', '3');
  const reads = countReads(context);
  const subscribers = [0, 0, 1, 1, 2, 2].flatMap((cursor) =>
    Array.from({ length: 10 }, () => edge.subscribe(stream, { cursor })),
  );
  edge.turns();
  assert.equal(reads(), 3);
  edge.publish(stream, '4');
  edge.turns();
  assert.equal(reads(), 4, 'all have come to the same place');
  for (const { sink } of subscribers) assert.equal(sink.seqs.at(-1), 4);
});

test('what is published while a crowd is written to goes out in one write with what came before', () => {
  const { edge } = new BrokerStage();
  const stream = edge.stream('s');
  const subscribers = Array.from({ length: 200 }, () => edge.subscribe(stream));
  edge.turns();
  edge.publish(stream, '1');
  edge.turn();
  edge.publish(stream, '2');
  edge.turns();
  assert.deepEqual(subscribers[0]?.sink.writes.length, 2);
  assert.deepEqual(subscribers.at(-1)?.sink.writes.length, 1);
  for (const { sink } of subscribers) assert.deepEqual(sink.seqs, [1, 2]);
});

test('no run is kept for the next turn, when the ring may hold something else (I5)', (context) => {
  const { edge } = new BrokerStage();
  const stream = edge.stream('s');
  edge.publish(stream, '1');
  const reads = countReads(context);
  for (let turn = 1; turn <= 3; turn++) {
    edge.drained(edge.subscribeHeld(stream, { cursor: 0 }));
    edge.turns();
    assert.equal(reads(), turn);
  }
});

test('I10 a turn that runs out of budget serves those who come later in the next one', () => {
  const { edge } = new BrokerStage({ streamBytesMax: 2 ** 20, writeBytesMax: 64 * 1024 });
  const stream = edge.stream('s');
  for (let i = 0; i < 3; i++) edge.publish(stream, 'x'.repeat(60_000));
  const subscribers = Array.from({ length: 600 }, () => edge.subscribeHeld(stream, { cursor: 0 }));
  for (const subscriber of subscribers) edge.drained(subscriber);
  let turns = 0;
  for (; subscribers.some(({ subscription }) => subscription.cursor < 3); turns++) {
    const before = cursors(subscribers);
    edge.turn();
    const after = cursors(subscribers);
    assert.ok(Math.max(...after) - Math.min(...after) <= 1, 'nobody gets a second run before all have one');
    assert.ok(sum(after) > sum(before), 'every turn gets somewhere');
  }
  assert.ok(turns > 3, 'the work takes more turns than one');
  for (const { sink } of subscribers) assert.deepEqual(sink.seqs, [1, 2, 3]);
});

test('I10 a stream with one reader is served although another one uses up every turn', () => {
  const { edge } = new BrokerStage();
  const [crowded, quiet] = [edge.stream('crowded'), edge.stream('quiet')];
  for (let i = 0; i < 8; i++) edge.publish(crowded, 'x'.repeat(60_000));
  const crowd = Array.from({ length: 400 }, () => edge.subscribe(crowded, { cursor: 0 }));
  edge.publish(quiet, '1');
  const alone = edge.subscribe(quiet, { cursor: 0 });
  edge.turn();
  edge.turn();
  assert.deepEqual(alone.sink.seqs, [1]);
  assert.ok(crowd.some(({ subscription }) => subscription.cursor < 8));
});

test('I10 a subscriber that dies while it is written to takes nothing from the others', () => {
  const { edge } = new BrokerStage();
  const stream = edge.stream('s');
  const subscribers = range(0, 9).map(() => edge.subscribe(stream));
  for (const index of [0, 4, 9]) {
    const { sink, subscription } = subscribers[index] as Subscriber;
    sink.onWrite = () => {
      sink.takes = false;
      edge.broker.unsubscribe(subscription);
    };
  }
  for (let seq = 1; seq <= 3; seq++) {
    edge.publish(stream, String(seq));
    edge.turns();
  }
  for (const [index, { sink, subscription }] of subscribers.entries()) {
    const died = [0, 4, 9].includes(index);
    assert.deepEqual(sink.seqs, died ? [1] : [1, 2, 3]);
    assert.equal(subscription.state, died ? 'ended' : 'ready');
  }
  assert.equal(edge.broker.subscriberCount, 7);
  assert.equal(edge.counters.get(Counter.subscribers), 7);
  assert.equal(edge.broker.positions(stream)?.subscribers, 7);
});

test('I10 a subscriber that stalls in the midst of a pass hides nobody behind it', () => {
  const { edge } = new BrokerStage();
  const stream = edge.stream('s');
  const early = range(1, 3).map(() => edge.subscribe(stream));
  edge.publish(stream, '1');
  edge.turns();
  // The next pass begins with those who came since, and gets to the first ones when these two are done.
  const late = range(1, 2).map(() => edge.subscribe(stream));
  (early[0] as Subscriber).sink.takes = false;
  edge.publish(stream, '2');
  edge.turns();
  for (const { sink } of [...early, ...late]) assert.equal(sink.seqs.at(-1), 2);
});

test('I2 a run that does not begin with the expected event is never passed on', () => {
  const stage = new BrokerStage();
  const { edge } = stage;
  const stream = edge.stream('s');
  edge.publish(stream, '1', '2');
  const digit = `id: ${stream.epoch}.`.length;
  (stage.rings.arena.bytes[0] as Uint8Array)[digit] = '7'.charCodeAt(0);
  const sinks = [new FakeSink(), new FakeSink()];
  for (const sink of sinks) edge.subscribe(stream, { cursor: 0, sink });
  edge.turns();
  for (const sink of sinks) assert.deepEqual([sink.writes, sink.endings], [[], ['cut']]);
  assert.equal(edge.counters.get(Counter.seamViolations), 2);
  assert.equal(edge.broker.subscriberCount, 0);
});

test('deliveries and their bytes count once for every subscriber', () => {
  const { edge } = new BrokerStage();
  const stream = edge.stream('s');
  const subscribers = range(1, 5).map(() => edge.subscribe(stream));
  edge.publish(stream, 'a', 'b', 'c');
  edge.turns();
  const bytes = (subscribers[0] as Subscriber).sink.writes.join('').length;
  assert.equal(edge.counters.get(Counter.deliveries), 15);
  assert.equal(edge.counters.get(Counter.deliveredBytes), 5 * bytes);
});

function cursors(subscribers: readonly Subscriber[]): number[] {
  return subscribers.map(({ subscription }) => subscription.cursor);
}

function sum(numbers: readonly number[]): number {
  return numbers.reduce((total, number) => total + number, 0);
}
