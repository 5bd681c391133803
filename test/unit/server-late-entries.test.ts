import assert from 'node:assert/strict';
import { beforeEach, describe, test } from 'node:test';
import { formatCursor } from '#gapless/core/cursor.js';
import type { StoredEntry, StoredSubscriber } from '#gapless/storage/replicated-log.js';
import { eventually } from '../support/deadline.js';
import { SharedMedium } from '../support/memory-replicated-log.js';
import { ReplicaStage } from './replica-stage.js';

/** A log that compares nothing has an append in it whenever it came. */
describe('an entry that came long after its place was taken', () => {
  let medium: SharedMedium;
  let broker: ReplicaStage;

  const start = async (): Promise<ReplicaStage> => {
    const stage = new ReplicaStage({ medium });
    stage.log.isExact = false;
    await stage.replication.start();
    return stage;
  };
  beforeEach(async () => {
    medium = new SharedMedium();
    broker = await start();
  });

  const dataOf = (first: number, last: number): string[] =>
    Array.from({ length: last - first + 1 }, (_, index) => `event ${first + index}`);
  const publishUpTo = async (last: number): Promise<void> => {
    for (let i = (broker.positions('s')?.head ?? 0) + 1; i <= last; i++) {
      broker.nowMs += 1000;
      await broker.publish('s', [`event ${i}`]);
    }
  };
  const entryOf = (seq: number): StoredEntry => {
    const found = medium.entries.find(({ entry }) => entry.head === seq && entry.count === 1);
    assert.ok(found !== undefined);
    return found;
  };
  /** As if another broker had appended it at the time of an event of this one. */
  const putLate = ({ entry, body }: StoredEntry, times = 1): void => {
    for (let i = 0; i < times; i++) medium.put('s', { ...entry, writer: `other.${i}` }, body, null);
  };

  test('hides no event, whichever a reader asks for', async () => {
    await publishUpTo(40);
    putLate(entryOf(3), 2);
    await publishUpTo(60);
    putLate(entryOf(50));
    await publishUpTo(80);
    putLate(entryOf(20), 3);
    for (let seq = 79; seq >= 0; seq--) {
      const fresh = await start();
      assert.equal((await fresh.data('s', seq, 1))[0], `event ${seq + 1}`);
    }
    assert.deepEqual(await broker.data('s'), dataOf(1, 80));
  });

  for (const [reason, retention] of [
    ['age', { ageMs: 60_000 }],
    ['size', { bytes: 60 * 16 }],
  ] as const) {
    test(`lets no more go for its ${reason}`, async () => {
      const floorOf = async (lates: number): Promise<number> => {
        medium = new SharedMedium();
        broker = await start();
        await broker.replication.put('s', { retention });
        await publishUpTo(70);
        putLate(entryOf(3), lates);
        await publishUpTo(150);
        await eventually('the floor to move', () => (broker.positions('s')?.logFloor ?? 0) > 1);
        return broker.positions('s')?.logFloor as number;
      };
      const floor = await floorOf(0);
      assert.ok(floor > 1 && floor < 100, `${floor}`);
      assert.equal(await floorOf(40), floor);
      assert.deepEqual(await broker.data('s', floor - 1), dataOf(floor, 150));
    });
  }

  test('does not become the newest where what took its place has gone since', async () => {
    await broker.replication.put('s', { retention: { events: 20 } });
    await publishUpTo(5);
    const late = entryOf(4);
    await publishUpTo(70);
    await eventually('its place to go', () => medium.entries.every(({ entry }) => entry.head > 10));
    putLate(late);
    const fresh = await start();
    assert.equal(fresh.positions('s')?.head, 70);
    const floor = fresh.positions('s')?.logFloor as number;
    assert.deepEqual(await fresh.data('s', floor - 1), dataOf(floor, 70));
    // Nor among others that came since.
    await publishUpTo(80);
    assert.equal((await start()).positions('s')?.head, 80);
    assert.deepEqual(await fresh.data('s', floor - 1), dataOf(floor, 80));
  });

  test('takes back nothing that a named subscriber has acknowledged, where what took its place has gone since', async () => {
    await publishUpTo(60);
    await broker.subscribers.join('s', 'ada', 'earliest');
    const epoch = broker.directory.find('s')?.epoch as string;
    await broker.subscribers.acknowledge('s', 'ada', { epoch, seq: 1 });
    const late = medium.subscribers.at(-1);
    assert.ok(late !== undefined);
    for (let seq = 2; seq <= 60; seq++) await broker.subscribers.acknowledge('s', 'ada', { epoch, seq });
    await eventually('its place to go', () => medium.subscribers.every(({ at }) => at > late.at));
    medium.putOf(late, { ...late.entry, writer: 'other' }, null);
    for (const stage of [broker, await start()]) {
      const joined = await stage.subscribers.join('s', 'ada', null);
      assert.deepEqual(joined?.start, { epoch, seq: 60 });
    }
  });

  test('takes back nothing that a named subscriber has acknowledged, where both go while they are read', async () => {
    await publishUpTo(2);
    const epoch = broker.directory.find('s')?.epoch as string;
    await broker.subscribers.join('s', 'ada', 'earliest');
    const { stream, subscriber, entry } = medium.subscribers.at(-1) as StoredSubscriber;
    const late = { ...entry, acked: formatCursor(epoch, 1), writer: 'other' };
    medium.putOf({ stream, subscriber }, late, null);
    await broker.subscribers.acknowledge('s', 'ada', { epoch, seq: 2 });
    const fresh = new ReplicaStage({ medium });
    const { subscribers } = fresh.log;
    const { next } = subscribers;
    let reads = 0;
    subscribers.next = async (key, from) => {
      const stored = await next(key, from);
      // As one of those that lie between, it is read for the second time.
      if (stored?.entry.writer === 'other' && ++reads === 2) {
        medium.subscribers = medium.subscribers.filter(({ at }) => at > stored.at);
      }
      return stored;
    };
    await fresh.replication.start();
    assert.equal(fresh.takenUp.find({ stream, subscriber })?.stored.entry.acked, formatCursor(epoch, 2));
  });

  test('2.3 does not bring back a stream that was removed', async () => {
    await publishUpTo(3);
    const late = entryOf(2);
    await broker.replication.remove('s');
    putLate(late);
    broker.nowMs += 90_000;
    broker.retention.sweep();
    await eventually('all of it to go', () => medium.entries.length === 0);
    assert.equal((await broker.replication.put('s', {})).created, true);
    assert.equal((await start()).positions('s')?.head, 0);
  });

  test('2.3 does not bring back a stream that goes from the log while it is read', async () => {
    await publishUpTo(3);
    const late = entryOf(2);
    await broker.replication.remove('s');
    putLate(late);
    const fresh = new ReplicaStage({ medium });
    fresh.log.isExact = false;
    const { newest } = fresh.log;
    let answers = 0;
    fresh.log.newest = async (name) => {
      const stored = await newest.call(fresh.log, name);
      // After it was asked up to where to read.
      if (++answers === 1) medium.entries = [];
      return stored;
    };
    await fresh.replication.start();
    assert.equal(answers >= 2, true);
    assert.equal(fresh.directory.find('s'), null);
  });

  test('2.3 does not bring back a stream of which nobody has lived to let the rest go', async () => {
    await publishUpTo(3);
    const late = entryOf(2);
    await broker.replication.remove('s');
    putLate(late);
    const fresh = new ReplicaStage({ medium });
    fresh.log.isExact = false;
    fresh.nowMs += 90_000;
    await fresh.replication.start();
    await eventually('all of it to go', () => medium.entries.length === 0);
  });

  test('2.3 takes nothing from a stream although it says that it was removed (I1)', async () => {
    await publishUpTo(5);
    const { entry, body } = entryOf(3);
    medium.put('s', { ...entry, state: 'removed' }, body, null);
    const fresh = new ReplicaStage({ medium });
    fresh.log.isExact = false;
    fresh.nowMs += 90_000;
    await fresh.replication.start();
    await broker.replication.refresh('s');
    assert.deepEqual(await fresh.data('s'), dataOf(1, 5));
    assert.deepEqual(await (await start()).data('s'), dataOf(1, 5));
  });

  test('7 does not bring back a named subscriber that was forgotten', async () => {
    await publishUpTo(3);
    await broker.subscribers.join('s', 'ada', 'earliest');
    const epoch = broker.directory.find('s')?.epoch as string;
    await broker.subscribers.acknowledge('s', 'ada', { epoch, seq: 1 });
    const late = medium.subscribers.at(-1);
    assert.ok(late !== undefined);
    await broker.subscribers.forget('s', 'ada');
    medium.putOf(late, { ...late.entry, writer: 'other' }, null);
    broker.nowMs += 90_000;
    broker.takenUp.sweep();
    await eventually('all of it to go', () => medium.subscribers.length === 0);
    assert.deepEqual((await broker.subscribers.join('s', 'ada', null))?.start, { epoch, seq: 3 });
  });

  test('4.8 takes nothing from a named subscriber that came again when all of before had gone', async () => {
    const { epoch } = await broker.publish('s', ['event 1', 'event 2']);
    await broker.subscribers.join('s', 'ada', 'earliest');
    await broker.subscribers.forget('s', 'ada');
    const forgotten = medium.subscribers.at(-1) as StoredSubscriber;
    const acked = formatCursor(epoch, 1);
    const late = { ...forgotten.entry, ...{ acked, previous: forgotten.at, writer: 'late' } };
    broker.nowMs += 90_000;
    broker.takenUp.sweep();
    await eventually('it to go', () => medium.subscribers.length === 0);
    await broker.subscribers.join('s', 'ada', 'latest');
    medium.putOf(forgotten, late, null);
    for (const { takenUp } of [broker, await start()]) {
      const known = takenUp.find({ stream: 's', subscriber: 'ada' });
      assert.equal(known?.stored.entry.acked, formatCursor(epoch, 2));
    }
  });

  test('does not count where the log has one replica by now (I3)', async () => {
    await publishUpTo(5);
    await broker.subscribers.join('s', 'ada', 'earliest');
    const epoch = broker.directory.find('s')?.epoch as string;
    for (const seq of [1, 2]) await broker.subscribers.acknowledge('s', 'ada', { epoch, seq });
    const late = medium.subscribers.at(-2);
    assert.ok(late !== undefined);
    medium.putOf(late, { ...late.entry, writer: 'other' }, null);
    putLate(entryOf(3));
    const exact = await ReplicaStage.start({ medium });
    assert.equal(exact.positions('s')?.head, 5);
    assert.deepEqual((await exact.subscribers.join('s', 'ada', null))?.start, { epoch, seq: 2 });
    assert.equal((await exact.publish('s', ['event 6'])).first, 6);
    assert.deepEqual(await broker.data('s'), dataOf(1, 6));
  });

  test('2.3 is not taken for the one that made a stream anew, by who has missed both', async () => {
    await publishUpTo(3);
    const other = await start();
    await broker.replication.remove('s');
    other.log.isDeaf = true;
    const { ref } = await broker.replication.put('s', {});
    const { entry, body } = medium.entries.at(-1) as StoredEntry;
    medium.put('s', { ...entry, epoch: 'late', origin: 'late', writer: 'other' }, body, null);
    await other.replication.start();
    assert.equal(other.directory.find('s')?.epoch, ref.epoch);
  });

  test('2.1 is not taken for the one that made a stream, by who starts afterwards (I3)', async () => {
    const { ref } = await broker.replication.put('s', {});
    const { entry, body } = medium.entries.at(-1) as StoredEntry;
    medium.put('s', { ...entry, epoch: 'late', origin: 'late', writer: 'other' }, body, null);
    for (const stage of [broker, await start()]) assert.equal(stage.directory.find('s')?.epoch, ref.epoch);
    await broker.publish('s', ['event 1']);
    for (const stage of [broker, await start()]) {
      assert.equal(stage.directory.find('s')?.epoch, ref.epoch);
      assert.deepEqual(await stage.data('s'), ['event 1']);
    }
  });

  test('7 does not move a named subscriber that joined elsewhere at the same time', async () => {
    await publishUpTo(3);
    await broker.subscribers.join('s', 'ada', 'earliest');
    const joined = medium.subscribers.at(-1);
    assert.ok(joined !== undefined);
    const acked = `${broker.directory.find('s')?.epoch}.3`;
    medium.putOf(joined, { ...joined.entry, acked, writer: 'other' }, null);
    for (const stage of [broker, await start()]) {
      await eventually('it to be read', () => (stage.takenUp.find(joined)?.tailAt ?? 0) > joined.at);
      assert.equal(stage.takenUp.find(joined)?.stored.entry.acked, joined.entry.acked);
    }
  });
});
