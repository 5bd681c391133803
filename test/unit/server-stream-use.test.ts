import assert from 'node:assert/strict';
import { test } from 'node:test';
import { SharedMedium } from '../support/memory-replicated-log.js';
import { DEFAULTS, ReplicaStage, settle, twoBrokers } from './replica-stage.js';

test('2.1 a stream that nobody uses for its time to live goes, unless somebody reads it at any broker', async () => {
  const { a, b } = await twoBrokers();
  await a.replication.put('s', { ...DEFAULTS, ttlMs: 10_000 });
  await a.publish('s', ['1']);
  const later = async (ms: number): Promise<void> => {
    a.nowMs += ms;
    b.nowMs += ms;
    a.retention.sweep();
    b.retention.sweep();
    await settle();
  };
  b.hasReaders('s', true);
  for (let i = 0; i < 5; i++) await later(6_000);
  assert.notEqual(a.directory.find('s'), null);
  b.hasReaders('s', false);
  for (let i = 0; i < 12; i++) await later(6_000);
  assert.equal(a.directory.find('s'), null);
  assert.equal(b.directory.find('s'), null);
});

test('2.1 that a stream is read is written once, however many brokers have readers', async () => {
  const medium = new SharedMedium();
  const brokers = await Promise.all([1, 2, 3].map(() => ReplicaStage.start({ medium })));
  const [a] = brokers as [ReplicaStage];
  await a.replication.put('s', { ...DEFAULTS, ttlMs: 10_000 });
  await settle();
  for (const broker of brokers) {
    broker.hasReaders('s', true);
    broker.nowMs += 6_000;
  }
  for (const { retention } of brokers) retention.sweep();
  await settle();
  assert.equal(medium.subscribers.length, 1);
  assert.equal(medium.entries.length, 1);
});

test('2.1 what a stream that is read takes in the log does not grow with the time for which nobody publishes', async () => {
  const medium = new SharedMedium();
  const brokers = await Promise.all([1, 2].map(() => ReplicaStage.start({ medium })));
  const [a] = brokers as [ReplicaStage];
  await a.replication.put('s', { ...DEFAULTS, ttlMs: 10_000 });
  await a.publish('s', ['kept']);
  for (const broker of brokers) broker.hasReaders('s', true);
  let most = 0;
  for (let sweeps = 0; sweeps < 300; sweeps++) {
    for (const broker of brokers) {
      broker.nowMs += 6_000;
      broker.retention.sweep();
    }
    await settle();
    most = Math.max(most, medium.entries.length + medium.subscribers.length);
  }
  assert.ok(most < 50, `${most} entries`);
  assert.deepEqual(await a.data('s'), ['kept']);
});

test('2.1 a broker that has not heard that a stream is read asks the log before it removes it', async () => {
  const { a, b } = await twoBrokers();
  await a.replication.put('s', { ...DEFAULTS, ttlMs: 10_000 });
  b.hasReaders('s', true);
  a.log.isDeaf = true;
  const later = async (ms: number, ...brokers: ReplicaStage[]): Promise<void> => {
    for (const broker of [a, b]) broker.nowMs += ms;
    for (const broker of brokers) broker.retention.sweep();
    await settle();
  };
  await later(6_000, b);
  b.hasReaders('s', false);
  await later(5_000, a);
  assert.notEqual(a.directory.find('s'), null);
  await later(6_000, a);
  assert.equal(a.directory.find('s'), null);
});
