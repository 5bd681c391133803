import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { Journal } from '#gapless/broker/journal.js';
import { NO_JOURNAL } from '#gapless/broker/journal.js';
import { NamedSubscribers, STREAM_SUBSCRIBERS_MAX } from '#gapless/broker/named-subscribers.js';
import { RequestError } from '#gapless/errors.js';
import { BrokerStage } from './broker-stage.js';

function stageWith(subscribersMax: number): {
  stage: BrokerStage;
  named: NamedSubscribers;
  written: (string | null)[];
} {
  const stage = new BrokerStage({ streamsMax: 8 });
  const written: (string | null)[] = [];
  const journal: Journal = {
    ...NO_JOURNAL,
    acknowledged: (_ref, subscriber, cursor) =>
      written.push(cursor === null ? null : `${subscriber} ${cursor}`),
  };
  return {
    stage,
    named: new NamedSubscribers({ streams: stage.directory, journal, subscribersMax, hold: null }),
    written,
  };
}

const isRefusal = (code: string) => (error: unknown) => error instanceof RequestError && error.code === code;

test('4.8 a stream has a thousand named subscribers at most, and those who are known still come', () => {
  const { stage, named } = stageWith(10_000);
  stage.edge.stream('s');
  for (let i = 0; i < STREAM_SUBSCRIBERS_MAX; i++) named.join('s', `n${i}`, null);
  assert.throws(() => named.join('s', 'one-more', null), isRefusal('too_many_subscribers'));
  assert.ok(named.join('s', 'n0', null));
  assert.equal(named.size, STREAM_SUBSCRIBERS_MAX);
  named.forget('s', 'n0');
  assert.ok(named.join('s', 'one-more', null));
});

test('4.8 all streams together have as many as the setting says', () => {
  const { stage, named } = stageWith(3);
  for (const stream of ['a', 'b', 'c', 'd']) stage.edge.stream(stream);
  for (const stream of ['a', 'b', 'c']) named.join(stream, 'ada', null);
  assert.throws(() => named.join('d', 'ada', null), isRefusal('too_many_subscribers'));
  const { epoch } = stage.edge.stream('b');
  named.drop(epoch);
  assert.equal(named.size, 2);
  assert.ok(named.join('d', 'ada', null));
});

test('7 what is known is written down when it moves, and not when it does not', () => {
  const { stage, named, written } = stageWith(10);
  const stream = stage.edge.stream('s');
  stage.edge.publish(stream, '1', '2', '3');
  const at = (seq: number) => ({ epoch: stream.epoch, seq });
  named.join('s', 'ada', at(1));
  named.acknowledge('s', 'ada', at(3));
  named.acknowledge('s', 'ada', at(2));
  named.acknowledge('s', 'ada', at(3));
  named.join('s', 'ada', null);
  named.forget('s', 'ada');
  assert.deepEqual(written, [`ada ${stream.epoch}.1`, `ada ${stream.epoch}.3`, null]);
  assert.equal(named.acknowledgements, 3);
  assert.throws(() => named.acknowledge('s', 'ada', at(3)), isRefusal('subscriber_not_found'));
});

test('2.2 they are listed in order, with their lag; of another epoch it is not known', () => {
  const { stage, named } = stageWith(10);
  const stream = stage.edge.stream('s');
  stage.edge.publish(stream, '1', '2', '3');
  named.join('s', 'bob', 'earliest');
  named.join('s', 'ada', null);
  named.restore(stream.epoch, new Map([['eve', 'zyxwvutsrq.9']]));
  const state = stage.directory.state('s');
  assert.ok(state !== null);
  assert.deepEqual(named.list(state), [
    { name: 'ada', acked: `${stream.epoch}.3`, lag: 0 },
    { name: 'bob', acked: `${stream.epoch}.0`, lag: 3 },
    { name: 'eve', acked: 'zyxwvutsrq.9', lag: null },
  ]);
  assert.equal(named.lag(state), 3);
});
