import assert from 'node:assert/strict';
import { test } from 'node:test';
import { edgeBlockBytes, QUEUE_CELLS_OFFSET } from '#gapless/ring/layout.js';
import { withDeadline } from '../support/deadline.js';
import { BrokerStage, type StageEdge, type SteppedWakes, type Subscriber } from './broker-stage.js';

function twoEdges(streamsMax = 4): { stage: BrokerStage; here: StageEdge; there: StageEdge } {
  const stage = new BrokerStage({ edges: 2, streamsMax });
  const [here, there] = stage.edges as [StageEdge, StageEdge];
  stage.settle();
  return { stage, here, there };
}

test('what is published on one edge reaches subscribers on both, each in its own turn', () => {
  const { here, there } = twoEdges();
  const near = here.subscribe(here.stream('s'));
  const far = there.subscribe(there.stream('s'));
  here.turns();
  there.turns();
  here.publish(near.subscription.stream, '1', '2');
  assert.deepEqual([near.sink.writes, far.sink.writes], [[], []], 'nothing is written within the publish');
  there.turns();
  assert.deepEqual([near.sink.seqs, far.sink.seqs], [[], [1, 2]]);
  here.turns();
  assert.deepEqual(
    [near.sink.seqs, far.sink.seqs],
    [
      [1, 2],
      [1, 2],
    ],
  );
});

test('I6 publishes from both edges come to everybody in one order', () => {
  const { stage, here, there } = twoEdges();
  const near = here.subscribe(here.stream('s'));
  const far = there.subscribe(there.stream('s'));
  for (let i = 0; i < 20; i++) {
    const edge = i % 3 === 0 ? there : here;
    edge.publish(edge.stream('s'), String(i + 1));
    if (i % 4 === 0) here.turn();
    if (i % 5 === 0) there.turn();
  }
  stage.settle();
  const all = Array.from({ length: 20 }, (_, i) => i + 1);
  for (const { sink } of [near, far]) assert.deepEqual([sink.seqs, sink.texts], [all, all.map(String)]);
});

test('an edge that nobody reads on is not woken', () => {
  const { here, there } = twoEdges();
  const near = here.subscribe(here.stream('s'));
  const far = there.subscribe(there.stream('s'));
  there.broker.unsubscribe(far.subscription);
  here.turns();
  there.turns();
  here.publish(near.subscription.stream, '1');
  assert.equal(there.turns(), 0);
  assert.equal(here.turns(), 1);
});

test('a publish that falls into the turn of another edge is not missed by it (W1)', () => {
  const { here, there } = twoEdges();
  const far = there.subscribe(there.stream('s'));
  const stream = here.stream('s');
  there.turns();
  let left = 5;
  far.sink.onWrite = () => {
    if (left-- > 0) here.publish(stream, 'during the write');
  };
  here.publish(stream, 'before');
  there.turns();
  assert.deepEqual(far.sink.seqs, [1, 2, 3, 4, 5, 6]);
});

test('W1 publishes that fall into a turn of another edge do not overflow its queue', () => {
  // Three slots: a queue of four cells, which is room for each slot once.
  const { here, there } = twoEdges(3);
  const names = ['a', 'b', 'c'] as const;
  const publishToAll = () => {
    for (const name of names) here.publish(here.stream(name), 'x');
  };
  publishToAll();
  const far = names.map((name) => there.subscribeHeld(there.stream(name), { cursor: 0 }));
  let publishes = 0;
  for (const { sink } of far) {
    sink.onWrite = () => {
      if (publishes++ < 20) publishToAll();
    };
  }
  for (const subscriber of far) there.drained(subscriber);
  there.turns();
  const all = Array.from({ length: 21 }, (_, i) => i + 1);
  for (const { sink } of far) assert.deepEqual(sink.seqs, all);
});

test('W1 a stream that has a reader to catch up is not queued a second time by the turn that drains it', () => {
  const { stage, here, there } = twoEdges(1);
  const far = there.subscribe(there.stream('s'));
  const stream = here.stream('s');
  here.publish(stream, '1');
  there.turns();
  const late = there.subscribeHeld(there.stream('s'), { cursor: 0 });
  late.sink.onWrite = () => here.publish(stream, 'while it is written to');
  there.drained(late);
  there.turn();
  here.publish(stream, 'after the turn');
  const cells = [...new Int32Array(stage.wakesBuffer, edgeBlockBytes(2) + QUEUE_CELLS_OFFSET, 2)];
  assert.equal(cells.filter((cell) => cell === stream.slot + 1).length, 1);
  late.sink.onWrite = () => {};
  there.turns();
  for (const { sink } of [far, late]) assert.deepEqual(sink.seqs, [1, 2, 3]);
});

test('W1 a stream whose news is read before it was taken out of the queue is not queued a second time', () => {
  const { stage, here, there } = twoEdges(2);
  const [a, b] = [here.stream('a'), here.stream('b')];
  // Both were taken and settled before.
  for (const name of ['a', 'b']) there.subscribe(there.stream(name));
  for (const stream of [a, b]) here.publish(stream, '1');
  there.turns();
  const late = ['a', 'b'].map((name) => there.subscribeHeld(there.stream(name), { cursor: 0 }));
  for (const subscriber of late) there.drained(subscriber);
  // While the turn is at the first stream there is news of the second, which it then comes to and reads.
  (late[0] as Subscriber).sink.onWrite = () => here.publish(b, '2');
  there.turn();
  here.publish(b, '3');
  const cells = [...new Int32Array(stage.wakesBuffer, edgeBlockBytes(4) + QUEUE_CELLS_OFFSET, 4)];
  assert.equal(cells.filter((cell) => cell === b.slot + 1).length, 1);
  there.turns();
  assert.deepEqual((late[1] as Subscriber).sink.seqs, [1, 2, 3]);
});

test('W1 a publish at the moment when an edge has emptied its queue wakes it again', () => {
  const { stage, here, there } = twoEdges();
  const [first, second] = ['a', 'b'].map((name) => there.subscribe(there.stream(name)));
  there.turns();
  const wakes = stage.wakes as SteppedWakes;
  wakes.onEmpty = () => {
    wakes.onEmpty = () => {};
    here.publish(here.stream('b'), 'b');
  };
  here.publish(here.stream('a'), 'a');
  there.turns();
  assert.deepEqual([first?.sink.texts, second?.sink.texts], [['a'], ['b']]);
});

test('an edge that really sleeps is woken by a publish on another one, time after time', async () => {
  const stage = new BrokerStage({ edges: 2, sleep: 'for real' });
  const [here, there] = stage.edges as [StageEdge, StageEdge];
  const far = there.subscribe(there.stream('s'));
  const stream = here.stream('s');
  for (let seq = 1; seq <= 20; seq++) {
    there.turns();
    const due = there.whenDue();
    here.publish(stream, String(seq));
    await withDeadline('the wake-up', due);
    there.turns();
    assert.equal(far.sink.seqs.at(-1), seq);
  }
});
