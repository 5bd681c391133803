import assert from 'node:assert/strict';
import { test } from 'node:test';
import { RequestError } from '#gapless/errors.js';
import { LogError } from '#gapless/storage/event-log.js';
import { eventually } from '../support/deadline.js';
import { DEFAULTS, type ReplicaStage, settle, twoBrokers } from './replica-stage.js';

const isRefusal = (code: string) => (error: unknown) => error instanceof RequestError && error.code === code;

test('3.6 what one holds at one broker, publishers at another wait for, and nobody lets go', async () => {
  const { a, b } = await twoBrokers();
  for (const [stream, retention] of [
    ['by-events', { events: 10, bytes: 0, ageMs: 0 }],
    ['by-bytes', { events: 0, bytes: 160, ageMs: 0 }],
  ] as const) {
    const { ref } = await a.replication.put(stream, { ...DEFAULTS, retention, overflow: 'reject' });
    await a.subscribers.join(stream, 'ada', null);
    let head = 0;
    const publish = async (broker: ReplicaStage): Promise<void> => {
      head = (await broker.publish(stream, ['0123456789'])).last;
    };
    const untilFull = async (): Promise<void> => {
      for (;;) await publish(b);
    };
    await assert.rejects(untilFull(), isRefusal('backpressure'));
    await assert.rejects(publish(a), isRefusal('backpressure'));
    assert.ok(head >= 10 && head < 30, `${head} events are held`);
    const sweep = async (): Promise<void> => {
      for (let sweeps = 0; sweeps < 8; sweeps++) {
        a.retention.sweep();
        b.retention.sweep();
        await settle();
      }
    };
    await sweep();
    assert.equal(a.positions(stream)?.logFloor, 1);
    const before = head;
    await b.subscribers.acknowledge(stream, 'ada', { epoch: ref.epoch, seq: 5 });
    await publish(a);
    await sweep();
    assert.equal(a.positions(stream)?.logFloor, 6, 'what is not held is more than is kept');
    await b.subscribers.acknowledge(stream, 'ada', { epoch: ref.epoch, seq: before });
    await publish(b);
    await a.subscribers.forget(stream, 'ada');
    for (let i = 0; i < 50; i++) await publish(b);
  }
});

test('3.6 a broker that has not heard of who joined lets nothing go that it holds', async () => {
  const { a, b } = await rejecting();
  b.log.isDeaf = true;
  await a.subscribers.join('s', 'ada', 'earliest');
  // It does not know that these are held, but does of the events.
  await outgrow(b);
  assert.equal(b.positions('s')?.logFloor, 1);
  await b.replication.start();
  await assert.rejects(b.publish('s', ['one more']), isRefusal('backpressure'));
});

test('3.6 nor one that has not heard what somebody acknowledged, and takes it for somebody who came too late', async () => {
  const { a, b } = await rejecting();
  await a.subscribers.join('s', 'ada', 'earliest');
  for (let i = 2; i <= 15; i++) await a.publish('s', [`${i}`]);
  b.log.isDeaf = true;
  const epoch = a.directory.find('s')?.epoch as string;
  await a.subscribers.acknowledge('s', 'ada', { epoch, seq: 8 });
  for (let i = 16; i <= 23; i++) await a.publish('s', [`${i}`]);
  a.retention.sweep();
  await eventually('what nobody holds to go', () => a.positions('s')?.logFloor === 9);
  await outgrow(b);
  assert.equal(b.positions('s')?.logFloor, 9);
});

test('3.6 nor one that has not heard who came too late and goes on from what is there', async () => {
  const { a, b } = await twoBrokers();
  const retention = { events: 10, bytes: 0, ageMs: 60_000 };
  const { ref } = await a.replication.put('s', { ...DEFAULTS, retention, overflow: 'reject' });
  await a.publish('s', ['1', '2', '3', '4', '5']);
  await a.subscribers.join('s', 'ada', 'earliest');
  for (const broker of [a, b]) broker.nowMs += 130_000;
  a.retention.sweep();
  await eventually('what is old to go', () => b.positions('s')?.logFloor === 6);
  b.log.isDeaf = true;
  await a.publish('s', ['6', '7', '8', '9']);
  await a.subscribers.acknowledge('s', 'ada', { epoch: ref.epoch, seq: 8 });
  await outgrow(b);
  assert.equal(b.positions('s')?.logFloor, 6);
});

for (const who of ['who joined', 'who was forgotten and joined']) {
  test(`3.6 nor where ${who} was told that it could not, and came again`, async () => {
    const { a, b } = await rejecting();
    if (who.includes('forgotten')) {
      await a.subscribers.join('s', 'ada', 'earliest');
      await a.subscribers.forget('s', 'ada');
    }
    b.log.isDeaf = true;
    const { append } = a.log;
    a.log.append = async () => {
      throw new LogError('full', 'told to be full');
    };
    await assert.rejects(a.subscribers.join('s', 'ada', 'earliest'), isRefusal('log_full'));
    a.log.append = append;
    await a.subscribers.join('s', 'ada', 'earliest');
    await outgrow(b);
    assert.equal(b.positions('s')?.logFloor, 1);
  });
}

/** Two brokers on a log with a stream that rejects rather than evicts, and one event in it. */
async function rejecting(): Promise<{ a: ReplicaStage; b: ReplicaStage }> {
  const { a, b } = await twoBrokers();
  const retention = { events: 10, bytes: 0, ageMs: 0 };
  await a.replication.put('s', { ...DEFAULTS, retention, overflow: 'reject' });
  await b.publish('s', ['1']);
  return { a, b };
}

/** Publishes far more than that stream keeps, and has what nobody holds go. */
async function outgrow(broker: ReplicaStage): Promise<void> {
  for (let i = 2; i < 40; i++) await broker.publish('s', [`${i}`]);
  for (let sweeps = 0; sweeps < 8; sweeps++) {
    broker.retention.sweep();
    await settle();
  }
}
