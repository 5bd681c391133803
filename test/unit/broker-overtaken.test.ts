import assert from 'node:assert/strict';
import { type TestContext, test } from 'node:test';
import { Counter } from '#gapless/ring/counters.js';
import { RingReader } from '#gapless/ring/read.js';
import { BrokerStage, type StageEdge, type Subscriber } from './broker-stage.js';

/** A stream that holds the newest three or so of its 1000-byte events, for lack of a larger ring. */
function tightStage(edges = 1): BrokerStage {
  return new BrokerStage({ edges, streamBytesMax: 4096, publishBytesMax: 2048 });
}

function stall(edge: StageEdge, subscriber: Subscriber, text: string): void {
  subscriber.sink.takes = false;
  edge.publish(subscriber.subscription.stream, text);
  edge.turns();
  assert.equal(subscriber.subscription.state, 'stalled');
}

function publishMany(edge: StageEdge, subscriber: Subscriber, count: number): void {
  for (let i = 0; i < count; i++) {
    edge.publish(subscriber.subscription.stream, 'x'.repeat(1000));
    edge.turns();
  }
}

test('4.6 a stalled reader that eviction overtook is cut off at the next tick, once, and counted', () => {
  const { edge } = tightStage();
  const stream = edge.stream('s');
  const slow = edge.subscribe(stream);
  const fast = edge.subscribe(stream);
  stall(edge, slow, '1');
  publishMany(edge, slow, 10);
  assert.deepEqual(slow.sink.endings, [], 'it is told by the tick');
  edge.ticks(5);
  edge.drained(slow);
  publishMany(edge, slow, 3);
  edge.ticks(5);
  assert.deepEqual([slow.sink.endings, slow.sink.lastFrame], [['cut'], null]);
  assert.deepEqual([slow.sink.seqs, slow.subscription.state], [[1], 'ended']);
  assert.equal(fast.sink.seqs.length, 14, 'the reader beside it got all');
  assert.equal(edge.counters.get(Counter.overtaken), 1);
  assert.equal(edge.counters.get(Counter.unavailableEvicted), 1);
  assert.equal(edge.counters.get(Counter.evictedUndelivered), 7, 'events 2 to 8 of 11, with 9 the floor');
  assert.equal(edge.broker.subscriberCount, 1);
});

test('4.6 a reader that asked to be told gets one event that says where it stood and what can be had', () => {
  const { edge } = tightStage();
  const stream = edge.stream('s');
  const slow = edge.subscribe(stream, { tellUnavailable: true });
  stall(edge, slow, '1');
  publishMany(edge, slow, 9);
  edge.ticks(3);
  assert.deepEqual(slow.sink.endings, [], 'its socket takes nothing now');
  publishMany(edge, slow, 1);
  edge.drained(slow);
  edge.turns();
  edge.ticks(3);
  assert.deepEqual(slow.sink.endings, ['end']);
  const { type, data, lastEventId } = slow.sink.lastEvent as {
    type: string;
    data: string;
    lastEventId: string;
  };
  const { epoch } = stream;
  assert.deepEqual([type, lastEventId], ['resume_unavailable', `${epoch}.11`]);
  const { code, reason, cursor, floor, head, earliest } = JSON.parse(data);
  assert.deepEqual(
    { code, reason, cursor, floor, head, earliest },
    {
      code: 'resume_unavailable',
      reason: 'evicted',
      cursor: `${epoch}.1`,
      floor: 9,
      head: 11,
      earliest: `${epoch}.8`,
    },
  );
});

for (const tellUnavailable of [false, true]) {
  const shown = tellUnavailable ? 'told' : 'cut off';
  test(`4.6 a reader that drains after eviction overtook it is ${shown} in that turn, before any tick`, () => {
    const { edge } = tightStage();
    const slow = edge.subscribe(edge.stream('s'), { tellUnavailable });
    stall(edge, slow, '1');
    publishMany(edge, slow, 10);
    edge.drained(slow);
    edge.turns();
    assert.deepEqual(slow.sink.endings, [tellUnavailable ? 'end' : 'cut']);
    assert.deepEqual(slow.sink.seqs, [1], 'I2: nothing of what came later is written');
    assert.equal(slow.subscription.delivered, 1);
    assert.equal(edge.counters.get(Counter.overtaken), 1);
  });
}

test('4.6 a reader that was classified as resumable and is overtaken before its first run is told as well', () => {
  const { edge } = tightStage();
  const stream = edge.stream('s');
  edge.publish(stream, 'x'.repeat(1000), 'x'.repeat(1000));
  const late = edge.register(stream, { cursor: 0 });
  for (let i = 0; i < 5; i++) edge.publish(stream, 'x'.repeat(1000));
  edge.broker.start(late.subscription, true);
  edge.turns();
  assert.deepEqual([late.sink.writes, late.sink.endings], [[], ['cut']]);
  assert.equal(edge.counters.get(Counter.evictedUndelivered), 4);
});

test('4.6 a stalled reader exactly at the floor is not overtaken', () => {
  const { edge } = tightStage();
  const slow = edge.subscribe(edge.stream('s'));
  stall(edge, slow, 'x'.repeat(1000));
  publishMany(edge, slow, 3);
  assert.equal(edge.broker.positions(slow.subscription.stream)?.floor, 2);
  edge.ticks(3);
  edge.drained(slow);
  edge.turns();
  assert.deepEqual([slow.sink.seqs, slow.sink.endings], [[1, 2, 3, 4], []]);
  assert.equal(edge.counters.get(Counter.overtaken), 0);
});

test('4.6 of many stalled readers exactly those are cut off that eviction has passed', () => {
  const { edge } = tightStage();
  const stream = edge.stream('s');
  const slow: Subscriber[] = [];
  for (let i = 0; i < 6; i++) {
    const subscriber = edge.subscribe(stream);
    stall(edge, subscriber, 'x'.repeat(1000));
    slow.push(subscriber);
  }
  edge.ticks(1);
  const ends = slow.map(({ sink }) => sink.endings.length);
  // Events 4 to 6 are kept; who has had the third can go on.
  assert.deepEqual(ends, [1, 1, 0, 0, 0, 0]);
  for (const subscriber of slow.slice(2)) edge.drained(subscriber);
  edge.turns();
  assert.deepEqual(
    slow.map(({ sink }) => sink.seqs.at(-1)),
    [1, 2, 6, 6, 6, 6],
  );
});

test('I10 the publisher and the other readers do not notice a reader that never drains', () => {
  const { edge } = tightStage();
  const stream = edge.stream('s');
  const stuck = edge.subscribe(stream);
  stall(edge, stuck, '1');
  const fast = edge.subscribe(stream);
  for (let i = 0; i < 200; i++) {
    edge.publish(stream, 'x'.repeat(500));
    edge.turns();
    if (i % 10 === 0) edge.ticks(1);
  }
  assert.equal(stuck.sink.writes.length, 1);
  assert.equal(fast.sink.seqs.length, 200);
});

test('2.1 readers that keep up get every event of a burst, however little the stream keeps', () => {
  const stage = new BrokerStage({ edges: 2, retention: { events: 5 } });
  const [here, there] = stage.edges as [StageEdge, StageEdge];
  const [first, second] = [here.subscribe(here.stream('s')), there.subscribe(there.stream('s'))];
  for (let burst = 0; burst < 10; burst++) {
    here.publish(first.subscription.stream, ...Array.from({ length: 300 }, () => 'x'));
    here.turns();
    there.turns();
  }
  for (const { sink } of [first, second]) {
    assert.deepEqual(
      sink.seqs,
      Array.from({ length: 3000 }, (_, i) => i + 1),
    );
  }
  const { floor, head } = here.broker.positions(first.subscription.stream) ?? { floor: 0, head: 0 };
  assert.ok(head - floor + 1 <= 10, 'and once all have read, no more than twice the limit is kept');
});

/** Has things happen right after the nth time from now on that anybody asks the rings where a stream stands. */
function afterLooks(context: TestContext, happenings: readonly { nth: number; happen: () => void }[]): void {
  const { look } = RingReader.prototype;
  let looks = 0;
  RingReader.prototype.look = function (this: RingReader, ...args: Parameters<typeof look>) {
    const found = look.apply(this, args);
    looks++;
    const due = happenings.filter(({ nth }) => nth === looks);
    // What happens looks too, and is not what is counted.
    const counted = looks;
    for (const { happen } of due) happen();
    looks = counted;
    return found;
  };
  context.after(() => {
    RingReader.prototype.look = look;
  });
}

const NEVER = 100;

for (const published of [1, 2, 3]) {
  for (const trimmed of [1, 2, 3, 4, NEVER].filter((nth) => nth >= published)) {
    const shown = `news after look ${published} and another edge's turn after ${trimmed === NEVER ? 'all' : trimmed}`;
    test(`2.1 a reader that keeps up is not cut off by ${shown}`, (context) => {
      const stage = new BrokerStage({ edges: 2, retention: { events: 5 } });
      const [here, there] = stage.edges as [StageEdge, StageEdge];
      const [near, far] = [here.subscribe(here.stream('s')), there.subscribe(there.stream('s'))];
      const { stream } = near.subscription;
      stage.settle();
      here.publish(stream, '1');
      here.turns();
      const burst = Array.from({ length: 50 }, () => 'while the other edge reads');
      afterLooks(context, [
        { nth: published, happen: () => here.publish(stream, ...burst) },
        { nth: trimmed, happen: () => here.turns() },
      ]);
      there.turn();
      here.turns();
      stage.settle();
      assert.deepEqual(far.sink.endings, []);
      assert.equal(far.sink.seqs.length, near.sink.seqs.length);
    });
  }
}
