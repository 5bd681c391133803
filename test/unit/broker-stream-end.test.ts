import assert from 'node:assert/strict';
import { test } from 'node:test';
import { APPEND_CLOSED, APPEND_GONE } from '#gapless/ring/append.js';
import { Counter } from '#gapless/ring/counters.js';
import * as layout from '#gapless/ring/layout.js';
import { i32At } from '#gapless/ring/rings.js';
import { BrokerStage, boundReads, type StageEdge, type Subscriber } from './broker-stage.js';

function assertEnded(subscriber: Subscriber, type: string, cursor: string): void {
  const { sink, subscription } = subscriber;
  assert.deepEqual([sink.endings, subscription.state], [['end'], 'ended']);
  assert.equal(sink.lastEvent?.type, type);
  assert.equal(sink.lastEvent?.lastEventId, '', 'the reader keeps its own last id');
  assert.deepEqual(JSON.parse(sink.lastEvent?.data ?? ''), { cursor });
}

function interest(stage: BrokerStage, slot: number): number {
  return stage.rings.i32[i32At(slot, layout.INTEREST_MASK_OFFSET)] as number;
}

test('4.7 a closed stream ends for everybody after its last event, for a stalled reader after it drained', () => {
  const stage = new BrokerStage();
  const { edge } = stage;
  const stream = edge.stream('s');
  const [live, slow] = [edge.subscribe(stream), edge.subscribe(stream)];
  slow.sink.takes = false;
  edge.publish(stream, '1');
  edge.turns();
  edge.publish(stream, '2');
  stage.directory.close('s');
  edge.turns();
  assert.deepEqual(live.sink.seqs, [1, 2]);
  assertEnded(live, 'stream_closed', `${stream.epoch}.2`);
  assert.deepEqual(slow.sink.endings, [], 'its socket takes nothing now');
  edge.drained(slow);
  edge.turns();
  assert.deepEqual(slow.sink.seqs, [1, 2]);
  assertEnded(slow, 'stream_closed', `${stream.epoch}.2`);
  assert.equal(edge.tryPublish(stream, ['3']), APPEND_CLOSED);
  assert.equal(edge.broker.subscriberCount, 0);
});

test('4.7 a reader who comes to a closed stream gets the rest of it and then the end', () => {
  const stage = new BrokerStage();
  const { edge } = stage;
  const stream = edge.stream('s');
  edge.publish(stream, '1', '2', '3');
  stage.directory.close('s');
  const reader = edge.subscribe(stream, { cursor: 1 });
  edge.turns();
  assert.deepEqual(reader.sink.seqs, [2, 3]);
  assertEnded(reader, 'stream_closed', `${stream.epoch}.3`);
});

test('2.3 a deleted stream ends for everybody where they stand, stalled or not, and nothing stays behind', () => {
  const stage = new BrokerStage({ edges: 2 });
  const [edge, other] = stage.edges as [StageEdge, StageEdge];
  const stream = edge.stream('s');
  const [live, slow] = [edge.subscribe(stream), edge.subscribe(stream)];
  const far = other.subscribe(other.stream('s'));
  slow.sink.takes = false;
  edge.publish(stream, '1');
  stage.settle();
  edge.publish(stream, '2');
  edge.turns();
  stage.directory.remove('s');
  stage.settle();
  assertEnded(live, 'stream_deleted', `${stream.epoch}.2`);
  assertEnded(slow, 'stream_deleted', `${stream.epoch}.1`);
  assertEnded(far, 'stream_deleted', `${stream.epoch}.1`);
  assert.equal(edge.tryPublish(stream, ['3']), APPEND_GONE);
  assert.equal(edge.broker.streams.known('s'), null);
  for (const { broker, counters } of stage.edges) {
    assert.deepEqual([broker.subscriberCount, counters.get(Counter.subscribers)], [0, 0]);
  }
  assert.equal(interest(stage, stream.slot), 0);
  assert.equal(stage.rings.arena.usage().usedBytes, 0);
});

test('2.3 a stream that is deleted in the midst of a turn ends for all of its readers', (context) => {
  boundReads(context, 1000);
  const stage = new BrokerStage();
  const { edge } = stage;
  const stream = edge.stream('s');
  edge.publish(stream, '1', '2', '3');
  const subscribers = [0, 1, 2].map((cursor) => edge.subscribeHeld(stream, { cursor }));
  for (const subscriber of subscribers) edge.drained(subscriber);
  // The coordinator is another thread: it may do this between any two reads of the edge.
  (subscribers[0] as Subscriber).sink.onWrite = () => stage.directory.remove('s');
  edge.turns();
  assert.deepEqual((subscribers[0] as Subscriber).sink.seqs, [1, 2, 3]);
  for (const { sink } of subscribers) {
    assert.deepEqual([sink.endings, sink.lastEvent?.type], [['end'], 'stream_deleted']);
  }
});

test('2.3 a stream that is deleted between registration and start ends for that reader', () => {
  const stage = new BrokerStage();
  const { edge } = stage;
  const stream = edge.stream('s');
  edge.publish(stream, '1');
  const reader = edge.register(stream, { cursor: 0 });
  stage.directory.remove('s');
  edge.broker.start(reader.subscription, true);
  edge.turns();
  assert.deepEqual(reader.sink.writes, []);
  assertEnded(reader, 'stream_deleted', `${stream.epoch}.0`);
});

test('2.3 a stream that is closed in the midst of a turn ends for all of its readers', (context) => {
  boundReads(context, 1000);
  const stage = new BrokerStage();
  const { edge } = stage;
  const stream = edge.stream('s');
  edge.publish(stream, '1', '2', '3');
  const subscribers = [0, 1, 2].map((cursor) => edge.subscribeHeld(stream, { cursor }));
  for (const subscriber of subscribers) edge.drained(subscriber);
  (subscribers[0] as Subscriber).sink.onWrite = () => stage.directory.close('s');
  edge.turns();
  for (const subscriber of subscribers) assertEnded(subscriber, 'stream_closed', `${stream.epoch}.3`);
});

test('6 who waits for an event is woken by the next one, by the close, or by the deletion, once', () => {
  const stage = new BrokerStage({ streamsMax: 3 });
  const { edge } = stage;
  for (const [name, happen] of [
    ['event', () => edge.publish(edge.stream('event'), '1')],
    ['close', () => stage.directory.close('close')],
    ['delete', () => stage.directory.remove('delete')],
  ] as const) {
    const stream = edge.stream(name);
    let woken = 0;
    const waiter = {
      afterSeq: 0,
      reads: true,
      wake() {
        woken++;
        edge.broker.removeWaiter(stream, waiter);
      },
    };
    edge.broker.expectReader(stream);
    edge.broker.addWaiter(stream, waiter);
    edge.turns();
    assert.equal(woken, 0, name);
    happen();
    edge.turns();
    assert.equal(woken, 1, name);
    assert.equal(interest(stage, stream.slot), 0, 'nobody reads here any more');
  }
});

test('I3 a slot that another stream has by now gives neither the events of the other', () => {
  for (const edgeMeetsNewFirst of [false, true]) {
    const stage = new BrokerStage({ streamsMax: 1 });
    const { edge } = stage;
    const old = edge.stream('old');
    const oldReader = edge.subscribe(old);
    const stalledReader = edge.subscribe(old);
    stalledReader.sink.takes = false;
    edge.publish(old, 'old 1');
    edge.turns();
    edge.publish(old, 'old 2');
    stage.directory.remove('old');
    const ref = stage.directory.resolve('new', true);
    assert.deepEqual([ref?.slot, ref?.epoch === old.epoch], [old.slot, false]);
    if (!edgeMeetsNewFirst) edge.turns();

    const next = edge.stream('new');
    const reader = edge.subscribe(next, { cursor: 0 });
    edge.publish(next, 'new 1');
    edge.turns();
    edge.drained(stalledReader);
    edge.publish(next, 'new 2');
    edge.turns();
    assertEnded(oldReader, 'stream_deleted', `${old.epoch}.1`);
    assertEnded(stalledReader, 'stream_deleted', `${old.epoch}.1`);
    assert.deepEqual([oldReader.sink.texts, stalledReader.sink.texts], [['old 1'], ['old 1']]);
    assert.deepEqual(reader.sink.texts, ['new 1', 'new 2']);
    assert.equal(edge.tryPublish(old, ['stray']), APPEND_GONE);
    assert.equal(edge.broker.positions(next)?.subscribers, 1);
  }
});

test('I8 who comes too late to a deleted stream leaves the readers of the one that has its slot their news', () => {
  const stage = new BrokerStage({ streamsMax: 1 });
  const { edge } = stage;
  // As a request does that waits for the other streams that it is to follow.
  const old = edge.stream('old');
  stage.directory.remove('old');
  const reader = edge.subscribe(edge.stream('new'));
  edge.turns();
  edge.broker.expectReader(old);
  assert.equal(edge.broker.positions(old), null);
  edge.broker.releaseReader(old);
  edge.publish(reader.subscription.stream, 'news');
  edge.turns();
  assert.deepEqual(reader.sink.texts, ['news']);
  edge.broker.unsubscribe(reader.subscription);
  assert.equal(interest(stage, old.slot), 0, 'nobody reads here any more');
});

test('I3 what is told late of a deleted stream does not take the place of the one that has its slot', () => {
  const stage = new BrokerStage({ streamsMax: 1 });
  const { edge } = stage;
  const late = stage.directory.resolve('old', true);
  assert.ok(late !== null);
  stage.directory.remove('old');
  const reader = edge.subscribe(edge.stream('new'));
  edge.turns();
  // Another thread than the coordinator may be slower with it.
  const old = edge.broker.streams.adopt(late);
  assert.deepEqual([old.epoch, edge.broker.positions(old)], [late.epoch, null]);
  edge.publish(reader.subscription.stream, 'news');
  edge.turns();
  assert.deepEqual(reader.sink.texts, ['news']);
  assert.equal(edge.broker.streams.known('new'), reader.subscription.stream);
});

test('I3 a stream made again under its name is another one, whose readers are not those of the first', () => {
  const stage = new BrokerStage({ edges: 2 });
  const [edge, other] = stage.edges as [StageEdge, StageEdge];
  const first = edge.subscribe(edge.stream('s'));
  const far = other.subscribe(other.stream('s'));
  edge.publish(first.subscription.stream, '1');
  stage.settle();
  stage.directory.remove('s');
  const again = other.subscribe(other.stream('s'), { cursor: 0 });
  other.publish(again.subscription.stream, 'one');
  stage.settle();
  const { epoch } = first.subscription.stream;
  for (const subscriber of [first, far]) assertEnded(subscriber, 'stream_deleted', `${epoch}.1`);
  assert.deepEqual(again.sink.texts, ['one']);
  assert.notEqual(again.subscription.stream.epoch, epoch);
});

test('an edge without readers is not told, and one that gets a reader later is', () => {
  const stage = new BrokerStage();
  const { edge } = stage;
  const stream = edge.stream('s');
  edge.turns();
  edge.publish(stream, '1');
  assert.equal(edge.turns(), 0, 'a publish to nobody costs no turn');
  const reader = edge.subscribe(stream);
  assert.equal(interest(stage, stream.slot), 1);
  edge.broker.unsubscribe(reader.subscription);
  assert.equal(interest(stage, stream.slot), 0);
  edge.turns();
  edge.publish(stream, '2');
  assert.equal(edge.turns(), 0);
  const late = edge.subscribe(stream, { cursor: 1 });
  edge.turns();
  assert.deepEqual(late.sink.seqs, [2]);
});

test('10 a drain ends those it picks, properly, after a last frame', () => {
  const { edge } = new BrokerStage();
  const stream = edge.stream('s');
  const subscribers = Array.from({ length: 10 }, () => edge.subscribe(stream));
  let picks = 0;
  edge.broker.endWhere(
    () => picks++ % 2 === 0,
    () => ({ kind: 'drained', retryMs: 5 }),
    true,
  );
  const ended = subscribers.filter(({ sink }) => sink.endings.length > 0);
  assert.deepEqual([ended.length, edge.broker.subscriberCount], [5, 5]);
  for (const { sink } of ended) assert.deepEqual([sink.endings, sink.lastFrame], [['end'], 'retry: 5\n\n']);
  edge.publish(stream, '1');
  edge.turns();
  for (const { sink } of subscribers) assert.equal(sink.writes.length, sink.endings.length > 0 ? 0 : 1);
});
