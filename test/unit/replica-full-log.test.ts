import assert from 'node:assert/strict';
import { test } from 'node:test';
import { RequestError } from '#gapless/errors.js';
import { LOG_FULL, LOG_HEALTHY, LogCounter } from '#gapless/ring/log-status.js';
import { eventually } from '../support/deadline.js';
import { ENTRY_BYTES, SharedMedium } from '../support/memory-replicated-log.js';
import { DEFAULTS, ReplicaStage, settle } from './replica-stage.js';

const EVENT = 'x'.repeat(1000);

async function start(bytesMax: number): Promise<{ medium: SharedMedium; broker: ReplicaStage }> {
  const medium = new SharedMedium();
  medium.bytesMax = bytesMax;
  return { medium, broker: await ReplicaStage.start({ medium }) };
}

/** Publishes until the log takes no more. @returns what was acknowledged. */
async function fill(broker: ReplicaStage, stream: string): Promise<string[]> {
  const taken: string[] = [];
  for (;;) {
    const data = `${taken.length} ${EVENT}`;
    try {
      await broker.publish(stream, [data]);
    } catch (error) {
      assert.ok(error instanceof RequestError);
      assert.equal(error.code, 'log_full');
      return taken;
    }
    taken.push(data);
  }
}

async function untilHealthy(broker: ReplicaStage): Promise<void> {
  await eventually('room', async () => {
    broker.retention.sweep();
    await broker.room.look();
    return broker.status.fault === LOG_HEALTHY;
  });
}

test('3.6, 8 a full log refuses publishes, has all that it took, and goes on when retention makes room (I3, I4)', async () => {
  const { broker } = await start(30_000);
  await broker.replication.put('s', { ...DEFAULTS, retention: { ...DEFAULTS.retention, ageMs: 10_000 } });
  const taken = await fill(broker, 's');
  assert.ok(taken.length > 10);
  assert.equal(broker.status.fault, LOG_FULL);
  assert.deepEqual(await broker.data('s'), taken);
  // Nothing has to go yet.
  broker.retention.sweep();
  await broker.room.look();
  assert.equal(broker.status.fault, LOG_FULL);
  assert.equal(broker.status.get(LogCounter.capacityBytes), 30_000);
  assert.ok(broker.status.get(LogCounter.sizeBytes) > 28_000);
  assert.ok(broker.status.get(LogCounter.keptBytes) >= taken.length * EVENT.length);
  broker.nowMs += 25_000;
  await untilHealthy(broker);
  assert.equal(broker.positions('s')?.logFloor, taken.length + 1);
  const { first } = await broker.publish('s', ['again']);
  assert.equal(first, taken.length + 1);
});

test('2.3 streams can be deleted from a full log, which then has room', async () => {
  const { broker, medium } = await start(30_000);
  await broker.publish('kept', ['before']);
  await fill(broker, 'large');
  // Not even for what says that it goes.
  medium.bytesMax = medium.bytes + ENTRY_BYTES / 2;
  assert.equal(await broker.replication.remove('large'), true);
  assert.equal(broker.directory.find('large'), null);
  await untilHealthy(broker);
  await broker.publish('kept', ['after']);
  assert.deepEqual(await broker.data('kept'), ['before', 'after']);
});

test('2.1 what has to go goes from a log that has no room to say so', async () => {
  const { broker, medium } = await start(100_000);
  await broker.replication.put('s', { ...DEFAULTS, retention: { ...DEFAULTS.retention, ageMs: 10_000 } });
  for (let i = 0; i < 20; i++) await broker.publish('s', [`${i}`]);
  const before = medium.bytes;
  medium.bytesMax = before;
  broker.nowMs += 25_000;
  broker.retention.sweep();
  await eventually('the floor to move', () => broker.positions('s')?.logFloor === 21);
  assert.ok(medium.bytes < before / 4, `${medium.bytes} of ${before}`);
});

test('2.1 what cannot be written of a stream in a full log is tried again, and nothing that is read goes for it', async () => {
  const medium = new SharedMedium();
  const [writer, other] = [await ReplicaStage.start({ medium }), await ReplicaStage.start({ medium })];
  await writer.replication.put('read', { ...DEFAULTS, ttlMs: 10_000 });
  await other.replication.refresh('read');
  other.hasReaders('read', true);
  medium.bytesMax = medium.bytes;
  const later = async (): Promise<void> => {
    for (const broker of [other, writer]) {
      broker.nowMs += 4_000;
      broker.retention.sweep();
    }
    await settle();
    for (const broker of [other, writer]) await broker.room.look();
  };
  for (let sweeps = 0; sweeps < 12; sweeps++) await later();
  assert.notEqual(writer.directory.find('read'), null);
  medium.bytesMax = null;
  for (let sweeps = 0; sweeps < 12; sweeps++) await later();
  assert.notEqual(writer.directory.find('read'), null);
  assert.equal(writer.status.fault, LOG_HEALTHY);
});
