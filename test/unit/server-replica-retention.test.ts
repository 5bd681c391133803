import assert from 'node:assert/strict';
import { test } from 'node:test';
import { PRODUCER } from '#gapless/core/producer-record.js';
import { eventually } from '../support/deadline.js';
import { SharedMedium } from '../support/memory-replicated-log.js';
import { DEFAULTS, ReplicaStage } from './replica-stage.js';

const claim = (producer: string, seq: number) =>
  ({ kind: PRODUCER, digest: producer.padEnd(32, '0'), epoch: 0, seq }) as const;

async function settled(): Promise<void> {
  for (let turns = 0; turns < 20; turns++) await new Promise((resolve) => setImmediate(resolve));
}

/** A log of which the entries of a producer are about to go whose time is over, and that has another one behind those. */
async function withProducers() {
  const medium = new SharedMedium();
  const broker = await ReplicaStage.start({ medium });
  await broker.replication.put('s', { retention: { events: 10 } });
  await broker.publish('s', ['old'], { claim: claim('old', 0) });
  for (let i = 0; i < 5; i++) await broker.publish('s', [`${i}`]);
  broker.nowMs += 50_000;
  const placed = await broker.publish('s', ['new'], { claim: claim('new', 0) });
  for (let i = 0; i < 13; i++) await broker.publish('s', [`${i}`]);
  assert.equal(broker.positions('s')?.logFloor, 1);
  broker.nowMs += 20_000;
  return { medium, broker, placed };
}

test('3.4 a producer is known although entries before it are let go while they are read (I6)', async () => {
  const { medium, broker, placed } = await withProducers();
  const reader = await ReplicaStage.start({ medium });
  const { next } = reader.log;
  let reads = 0;
  reader.log.next = async (stream, from) => {
    const stored = await next.call(reader.log, stream, from);
    if (++reads === 3) {
      await broker.publish('s', ['one more'], { claim: claim('third', 0) });
      await eventually('the floor to move', () => (broker.positions('s')?.logFloor ?? 0) > 1);
      await eventually('entries to go', () => (medium.entries[0]?.entry.head ?? 0) > 5);
    }
    return stored;
  };
  const again = await reader.publish('s', ['new'], { claim: claim('new', 0) });
  assert.deepEqual(again, { ...placed, isDuplicate: true });
});

test('3.4 a producer is known although a broker whose clock is behind says that more is remembered (I6)', async () => {
  const { medium, broker, placed } = await withProducers();
  const behind = await ReplicaStage.start({ medium });
  // It knows them all, and goes on knowing them.
  await behind.publish('s', ['old'], { claim: claim('old', 0) });
  await broker.publish('s', ['one more'], { claim: claim('third', 0) });
  await eventually('entries to go', () => (medium.entries[0]?.entry.head ?? 0) > 5);
  await settled();
  for (let i = 0; i < 12; i++) await behind.publish('s', [`${i}`]);
  await settled();
  const fresh = await ReplicaStage.start({ medium });
  const again = await fresh.publish('s', ['new'], { claim: claim('new', 0) });
  assert.deepEqual(again, { ...placed, isDuplicate: true });
});

test('2.1 what retention cannot do while the log is away it does not try over and over', async () => {
  const medium = new SharedMedium();
  const broker = await ReplicaStage.start({ medium });
  await broker.replication.put('s', { ...DEFAULTS, retention: { events: 0, bytes: 0, ageMs: 1000 } });
  await broker.publish('s', ['1']);
  broker.nowMs += 10_000;
  const { next } = broker.log;
  let reads = 0;
  broker.log.next = (stream, from) => {
    reads++;
    return next.call(broker.log, stream, from);
  };
  broker.log.isAway = true;
  broker.retention.sweep();
  await settled();
  assert.ok(reads < 3, `${reads} reads`);
  broker.log.isAway = false;
  broker.retention.sweep();
  await eventually('the floor to move', () => broker.positions('s')?.logFloor === 2);
});
