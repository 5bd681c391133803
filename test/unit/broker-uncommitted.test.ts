import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { EdgeStream } from '#gapless/broker/edge-stream.js';
import { commitStream, readPositions } from '#gapless/ring/lifecycle.js';
import { BrokerStage } from './broker-stage.js';

const TTL_MS = 1000;

/** What is told to a publisher that waits for its commit, in order. */
function waitForCommit({ edge }: BrokerStage, stream: EdgeStream, afterSeq: number): (number | null)[] {
  const told: (number | null)[] = [];
  const waiter = {
    afterSeq,
    reads: false,
    wake(committed: number | null) {
      told.push(committed);
      edge.broker.removeWaiter(stream, waiter);
    },
  };
  edge.broker.expectReader(stream);
  edge.broker.addCommitWaiter(stream, waiter);
  return told;
}

test('9.3 publishers that wait for a commit are no subscribers of the stream', () => {
  const stage = new BrokerStage({ durable: true });
  const { edge } = stage;
  const stream = edge.stream('a');
  edge.publish(stream, '1');
  const told = waitForCommit(stage, stream, 0);
  edge.subscribe(stream);
  assert.equal(edge.broker.positions(stream)?.subscribers, 1);
  commitStream(stage.rings, stream, { seq: 1, logFloorSeq: 1 });
  stage.wakes.announce(stream.slot, -1);
  edge.turns();
  assert.deepEqual(told, [1], 'the publisher is told what is committed, once');
  assert.equal(edge.broker.positions(stream)?.subscribers, 1);
  assert.equal(edge.broker.uncommittedPublishes, 0);
});

test('3.3 a publisher whose stream is deleted before the commit is told so', () => {
  const stage = new BrokerStage({ durable: true });
  const { edge } = stage;
  const stream = edge.stream('a');
  edge.publish(stream, '1');
  const told = waitForCommit(stage, stream, 0);
  stage.directory.remove('a');
  edge.turns();
  assert.deepEqual(told, [null]);
});

test('2.1 a stream whose events wait for their commit is in use', () => {
  const stage = new BrokerStage({ durable: true, ttlMs: TTL_MS });
  const { edge } = stage;
  const stream = edge.stream('a');
  edge.publish(stream, '1');
  for (let i = 0; i < 5; i++) {
    stage.nowMs += TTL_MS;
    stage.directory.sweep();
  }
  assert.notEqual(readPositions(stage.rings, stream), null, 'its publisher was not told of a commit');
  commitStream(stage.rings, stream, { seq: 1, logFloorSeq: 1 });
  stage.nowMs += TTL_MS;
  stage.directory.sweep();
  assert.equal(readPositions(stage.rings, stream), null);
});
