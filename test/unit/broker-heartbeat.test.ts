import assert from 'node:assert/strict';
import { test } from 'node:test';
import { type Rendering, typesRendering } from '#gapless/broker/rendering.js';
import { Counter } from '#gapless/ring/counters.js';
import { BrokerStage, type StageEdge, type Subscriber } from './broker-stage.js';

const HEARTBEAT = ':\n\n';

function only(...types: readonly string[]): Rendering {
  return typesRendering(new Set(types));
}

/** Ticks until the subscriber was written something. @returns how many. */
function ticksUntilWritten(edge: StageEdge, { sink }: Subscriber): number {
  const before = sink.writes.length;
  let ticks = 0;
  for (; sink.writes.length === before; ticks++) {
    assert.ok(ticks < 1000, 'a heartbeat comes');
    edge.ticks(1);
  }
  return ticks;
}

test('4.3 an idle connection gets a heartbeat within the interval, whatever chance says', () => {
  for (const heartbeatIntervalMs of [20, 100, 1000, 15_000, 60_000]) {
    for (const random of [0, 0.25, 0.5, 0.999_999]) {
      const { edge } = new BrokerStage({ heartbeatIntervalMs });
      edge.random = random;
      const idle = edge.subscribe(edge.stream('s'));
      for (let beat = 1; beat <= 5; beat++) {
        const quietMs = ticksUntilWritten(edge, idle) * edge.broker.tickIntervalMs;
        assert.ok(quietMs <= heartbeatIntervalMs, `${quietMs} of ${heartbeatIntervalMs} ms`);
        assert.ok(beat === 1 || quietMs >= heartbeatIntervalMs / 4, `${quietMs} ms is too often`);
        assert.equal(idle.sink.writes.at(-1), HEARTBEAT);
      }
      assert.equal(edge.counters.get(Counter.heartbeats), 5);
    }
  }
});

test('heartbeats of connections that came together are spread by chance', () => {
  const { edge } = new BrokerStage({ heartbeatIntervalMs: 10_000 });
  const stream = edge.stream('s');
  const subscribers = Array.from({ length: 50 }, (_, i) => {
    edge.random = i / 50;
    return edge.subscribe(stream);
  });
  const written = new Set<number>();
  for (let tick = 1; tick <= 10; tick++) {
    edge.ticks(1);
    if (subscribers.some(({ sink }) => sink.writes.length === 1)) written.add(tick);
  }
  assert.ok(written.size >= 4, `heartbeats went out on ${written.size} ticks`);
});

test('4.3 a connection that is written to gets no heartbeat beside that', () => {
  const { edge } = new BrokerStage();
  const stream = edge.stream('s');
  const busy = edge.subscribe(stream);
  for (let i = 0; i < 100; i++) {
    edge.publish(stream, 'x');
    edge.ticks(1);
  }
  assert.equal(busy.sink.seqs.length, 100);
  assert.ok(!busy.sink.writes.includes(HEARTBEAT));
});

test('a stalled connection gets no heartbeat, and one that does not take its heartbeat is stalled (I7)', () => {
  const { edge } = new BrokerStage();
  const stream = edge.stream('s');
  const slow = edge.subscribe(stream);
  slow.sink.takes = false;
  ticksUntilWritten(edge, slow);
  assert.deepEqual([slow.sink.writes, slow.subscription.state], [[HEARTBEAT], 'stalled']);
  edge.publish(stream, '1');
  edge.ticks(100);
  assert.deepEqual(slow.sink.writes, [HEARTBEAT]);
  edge.drained(slow);
  edge.turns();
  assert.deepEqual(slow.sink.seqs, [1]);
});

test('a connection that a heartbeat finds dead leaves no trace', () => {
  const { edge } = new BrokerStage();
  const stream = edge.stream('s');
  const subscribers = [edge.subscribe(stream), edge.subscribe(stream), edge.subscribe(stream)] as const;
  for (const { sink, subscription } of subscribers.slice(0, 2)) {
    sink.takes = false;
    sink.onWrite = () => edge.broker.unsubscribe(subscription);
  }
  edge.ticks(30);
  assert.deepEqual(
    subscribers.map(({ subscription }) => subscription.state),
    ['ended', 'ended', 'ready'],
  );
  assert.equal(edge.broker.subscriberCount, 1);
});

test('4.9 a filter lets the types through that it names, in order, and the cursor passes over the rest', () => {
  const { edge } = new BrokerStage();
  const stream = edge.stream('s');
  const all = edge.subscribe(stream);
  const ticks = edge.subscribe(stream, { rendering: only('tick') });
  const both = edge.subscribe(stream, { rendering: only('message', 'tick') });
  edge.publishTyped(stream, 'tick', '1');
  edge.publish(stream, '2');
  edge.publishTyped(stream, 'tock', '3');
  edge.turns();
  edge.publishTyped(stream, 'tick', '4');
  edge.turns();
  assert.deepEqual(
    [all.sink.seqs, ticks.sink.seqs, both.sink.seqs],
    [
      [1, 2, 3, 4],
      [1, 4],
      [1, 2, 4],
    ],
  );
  for (const { subscription } of [all, ticks, both]) {
    assert.deepEqual([subscription.cursor, subscription.delivered], [4, 4]);
  }
});

test('4.9 subscribers with equal filters get the same, event after event', () => {
  const { edge } = new BrokerStage();
  const stream = edge.stream('s');
  const subscribers = [1, 2, 3].map(() => edge.subscribe(stream, { rendering: only('tick') }));
  for (let i = 1; i <= 30; i++) {
    edge.publishTyped(stream, i % 3 === 0 ? 'tock' : 'tick', String(i));
    edge.turns();
  }
  const ticks = Array.from({ length: 30 }, (_, i) => i + 1).filter((i) => i % 3 !== 0);
  for (const { sink } of subscribers) assert.deepEqual([sink.seqs, sink.texts], [ticks, ticks.map(String)]);
});

test('4.9 where a filter leaves everything out, nothing is written but an id at the heartbeat', () => {
  const { edge } = new BrokerStage();
  const stream = edge.stream('s');
  const filtered = edge.subscribe(stream, { rendering: only('tick') });
  edge.publish(stream, '1', '2', '3');
  edge.turns();
  assert.deepEqual([filtered.sink.writes, filtered.subscription.cursor], [[], 3]);
  ticksUntilWritten(edge, filtered);
  assert.deepEqual(filtered.sink.writes, [`id: ${stream.epoch}.3\n\n`]);
  ticksUntilWritten(edge, filtered);
  assert.deepEqual(filtered.sink.writes.slice(1), [HEARTBEAT], 'it was told of all there is');
  edge.publish(stream, '4');
  ticksUntilWritten(edge, filtered);
  assert.deepEqual(filtered.sink.writes.slice(2), [`id: ${stream.epoch}.4\n\n`]);
});

test('4.9 a stream of left-out events does not keep the heartbeat from a filtered connection', () => {
  const { edge } = new BrokerStage();
  const stream = edge.stream('s');
  const filtered = edge.subscribe(stream, { rendering: only('tick') });
  for (let i = 0; i < 30; i++) {
    edge.publish(stream, 'x');
    edge.ticks(1);
  }
  const ids = filtered.sink.writes.map((write) => Number(write.match(/\.(\d+)\n/)?.[1]));
  assert.ok(ids.length >= 2, 'at least each heartbeat');
  assert.ok(
    ids.every((id, i) => id > (ids[i - 1] ?? 0)),
    'I1: the ids go up',
  );
});

test('deliveries count the events that were written, not those that a filter left out', () => {
  const { edge } = new BrokerStage();
  const stream = edge.stream('s');
  edge.subscribe(stream, { rendering: only('tick') });
  edge.publishTyped(stream, 'tick', '1');
  edge.publish(stream, '2', '3');
  edge.turns();
  assert.equal(edge.counters.get(Counter.deliveries), 1);
});
