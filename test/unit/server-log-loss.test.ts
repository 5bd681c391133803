import assert from 'node:assert/strict';
import { test } from 'node:test';
import { formatCursor } from '#gapless/core/cursor.js';
import { LOG_HEALTHY } from '#gapless/ring/log-status.js';
import { LogError } from '#gapless/storage/event-log.js';
import { eventually } from '../support/deadline.js';
import { SharedMedium } from '../support/memory-replicated-log.js';
import { ReplicaStage, settle } from './replica-stage.js';

test('4.4 a stream of which the log lost nothing but an entry that did not count goes on', async () => {
  const medium = new SharedMedium();
  const broker = new ReplicaStage({ medium });
  broker.log.isExact = false;
  await broker.replication.start();
  const { epoch } = await broker.publish('s', ['1']);
  await broker.publish('s', ['2']);
  const { entry, body } = medium.entries.at(-1) as (typeof medium.entries)[number];
  // Of another broker that was later than this one.
  medium.put('s', { ...entry, writer: 'other' }, body, null);
  medium.lose(1);
  await broker.replication.start();
  assert.equal(broker.directory.find('s')?.epoch, epoch);
  const other = new ReplicaStage({ medium });
  other.log.isExact = false;
  await other.replication.start();
  assert.equal((await other.publish('s', ['3'])).first, 3);
  assert.equal((await broker.publish('s', ['4'])).first, 4);
  assert.deepEqual(await broker.data('s'), ['1', '2', '3', '4']);
});

test('4.4 a stream that lost events begins anew although one that has not seen them goes on with it meanwhile (I3)', async () => {
  const medium = new SharedMedium();
  const broker = await ReplicaStage.start({ medium });
  const { epoch } = await broker.publish('s', ['1']);
  await broker.publish('s', ['2']);
  medium.lose(1);
  const other = await ReplicaStage.start({ medium });
  const { append } = broker.log;
  let others = 2;
  // Each time that it is about to begin anew, the other is first.
  broker.log.append = async (stream, entry, body, after) => {
    if (others-- > 0) {
      await other.publish('s', ['another']);
      assert.notEqual(broker.directory.find('s')?.epoch, epoch, 'not even for a moment');
    }
    return append.call(broker.log, stream, entry, body, after);
  };
  await broker.replication.start();
  assert.notEqual(broker.directory.find('s')?.epoch, epoch);
  assert.equal(broker.directory.find('s')?.epoch, other.directory.find('s')?.epoch);
  assert.equal((await broker.publish('s', ['anew'])).first, 1);
  assert.deepEqual(await other.data('s'), ['anew']);
});

test('2.3 a broker that was away while a stream went and was made anew has the new one', async () => {
  const medium = new SharedMedium();
  const [broker, other] = [await ReplicaStage.start({ medium }), await ReplicaStage.start({ medium })];
  await broker.publish('s', ['1', '2', '3']);
  other.log.isDeaf = true;
  await broker.replication.remove('s');
  broker.nowMs += 90_000;
  broker.retention.sweep();
  await eventually('all of it to go', () => medium.entries.length === 0);
  const { ref } = await broker.replication.put('s', {});
  await other.replication.start();
  assert.equal(other.directory.find('s')?.epoch, ref.epoch);
});

test('2.3 what a broker has read of a named subscriber while its stream went hides none of the new one', async () => {
  const medium = new SharedMedium();
  const [broker, other] = [await ReplicaStage.start({ medium }), await ReplicaStage.start({ medium })];
  await broker.publish('s', ['1', '2', '3']);
  await broker.subscribers.join('s', 'ada', 'earliest');
  const { subscribers } = other.log;
  const { next } = subscribers;
  subscribers.next = async (key, from) => {
    const stored = await next(key, from);
    subscribers.next = next;
    await broker.replication.remove('s');
    return stored;
  };
  await other.takenUp.catchUp({ stream: 's', subscriber: 'ada' });
  const { epoch } = await broker.publish('s', ['anew']);
  await broker.subscribers.join('s', 'ada', 'earliest');
  assert.equal(other.named.has(epoch, 'ada'), true);
});

test('4.4 a broker that misses entries while it comes back to the log follows it once more', async () => {
  const medium = new SharedMedium();
  const [broker, other] = [await ReplicaStage.start({ medium }), await ReplicaStage.start({ medium })];
  await broker.publish('s', ['1']);
  const { follow } = other.log;
  let lose = true;
  other.log.follow = async (lastAt, follower) => {
    const stop = await follow.call(other.log, lastAt, follower);
    if (!lose) return stop;
    lose = false;
    stop();
    follower.lost('told to be lost at once');
    return stop;
  };
  await other.replication.recovered(new LogError('io', 'told to be lost'));
  await broker.publish('s', ['2']);
  assert.equal(other.positions('s')?.head, 2);
});

test('4.4 nothing is appended before it is known what the log has lost (I3)', async () => {
  const medium = new SharedMedium();
  const broker = await ReplicaStage.start({ medium });
  const { epoch } = await broker.publish('s', ['1']);
  broker.log.isDeaf = true;
  const lost = await broker.publish('s', ['2']);
  medium.lose(1);
  // Its place is taken by another broker, which has not seen it.
  const { entry, body } = medium.entries[1] as (typeof medium.entries)[number];
  medium.put('s', { ...entry, head: 2, previous: 2, writer: 'other' }, body, 2);
  const { open } = broker.log;
  const opened: (() => void)[] = [];
  broker.log.open = async () => {
    await new Promise<void>((resolve) => opened.push(resolve));
    return open.call(broker.log);
  };
  const recovered = broker.replication.recovered(new LogError('io', 'told to fail'));
  const refused = assert.rejects(broker.publish('s', ['waits']), { code: 'log_unavailable' });
  await eventually('the log to be opened', () => opened.length > 0);
  await settle();
  assert.equal(medium.lastAt, 3);
  broker.log.open = open;
  for (const resolve of opened) resolve();
  await Promise.all([recovered, refused]);
  const after = await broker.publish('s', ['anew']);
  assert.notEqual(after.epoch, epoch);
  assert.deepEqual([lost.first, after.first], [2, 1]);
});

test('2.3 a stream that was removed does not come back where the log lost that it was, and some of its events (I3)', async () => {
  const medium = new SharedMedium();
  const broker = await ReplicaStage.start({ medium });
  const epochs = [];
  for (const name of ['removed', 'made anew']) {
    const { epoch } = await broker.publish(name, ['1']);
    epochs.push(epoch);
  }
  const before = medium.copy();
  for (const name of ['removed', 'made anew']) {
    await broker.publish(name, ['2']);
    await broker.replication.remove(name);
  }
  await broker.publish('made anew', ['1']);
  await settle();
  medium.lose(medium.lastAt - before.lastAt);
  medium.entries = before.entries;
  const other = await ReplicaStage.start({ medium });
  assert.deepEqual(await other.data('removed'), ['1']);
  await broker.replication.start();
  for (const { directory } of [broker, other]) {
    assert.equal(directory.find('removed'), null);
    assert.equal(epochs.includes(directory.find('made anew')?.epoch as string), false);
  }
  assert.equal((await broker.publish('removed', ['anew'])).first, 1);
  assert.deepEqual(await other.data('removed'), ['anew']);
});

test('7 who joined anew in the place of a lost entry is not deleted by who still has that one as its last', async () => {
  const medium = new SharedMedium();
  const broker = await ReplicaStage.start({ medium });
  const { epoch } = await broker.publish('s', ['1']);
  await broker.subscribers.join('s', 'ada', 'earliest');
  await broker.subscribers.forget('s', 'ada');
  medium.lose(2);
  const other = await ReplicaStage.start({ medium });
  broker.log.isDeaf = true;
  await other.subscribers.join('s', 'ada', 'earliest');
  broker.nowMs += 90_000;
  broker.takenUp.sweep();
  await settle();
  const fresh = await ReplicaStage.start({ medium });
  assert.equal(fresh.named.has(epoch, 'ada'), true);
});

test('7 what the log lost of a named subscriber is noticed where other entries have its place by now', async () => {
  const medium = new SharedMedium();
  const [broker, other] = [await ReplicaStage.start({ medium }), await ReplicaStage.start({ medium })];
  const { epoch } = await broker.publish('s', ['1', '2', '3']);
  await broker.subscribers.join('s', 'ada', 'earliest');
  other.log.isDeaf = true;
  await broker.subscribers.acknowledge('s', 'ada', { epoch, seq: 2 });
  medium.lose(1);
  broker.log.isDeaf = true;
  await other.publish('another', ['1', '2', '3']);
  await broker.replication.start();
  const fresh = await ReplicaStage.start({ medium });
  const known = fresh.takenUp.find({ stream: 's', subscriber: 'ada' });
  assert.equal(known?.stored.entry.acked, formatCursor(epoch, 2));
});

test('7 one that was forgotten stays so where the log lost that it was', async () => {
  const medium = new SharedMedium();
  const broker = await ReplicaStage.start({ medium });
  const { epoch } = await broker.publish('s', ['1']);
  await broker.subscribers.join('s', 'ada', 'earliest');
  await broker.subscribers.forget('s', 'ada');
  medium.lose(1);
  const other = await ReplicaStage.start({ medium });
  assert.equal(other.named.has(epoch, 'ada'), true);
  await broker.replication.start();
  for (const { named } of [broker, other, await ReplicaStage.start({ medium })]) {
    assert.equal(named.has(epoch, 'ada'), false);
  }
});

test('7 one that was forgotten, or has come again since, is not brought back by who has not heard of it', async () => {
  for (const comesAgain of [false, true]) {
    const medium = new SharedMedium();
    const [broker, other] = [await ReplicaStage.start({ medium }), await ReplicaStage.start({ medium })];
    const { epoch } = await broker.publish('s', ['1', '2']);
    await broker.subscribers.join('s', 'ada', 'latest');
    other.log.isDeaf = true;
    await broker.subscribers.forget('s', 'ada');
    if (comesAgain) await broker.subscribers.join('s', 'ada', 'earliest');
    await broker.publish('another', ['1']);
    await other.replication.refresh('another');
    medium.lose(1);
    await other.replication.start();
    const known = broker.takenUp.find({ stream: 's', subscriber: 'ada' });
    assert.equal(known?.stored.entry.acked, comesAgain ? formatCursor(epoch, 0) : null);
  }
});

test('7 where the log lost the first cursor in an epoch, that of the epoch before does not take its place', async () => {
  const medium = new SharedMedium();
  const broker = await ReplicaStage.start({ medium });
  await broker.publish('s', ['1']);
  await broker.subscribers.join('s', 'ada', 'earliest');
  medium.replace();
  await broker.replication.start();
  const { epoch } = await broker.publish('s', ['anew']);
  await broker.subscribers.join('s', 'ada', { epoch, seq: 1 });
  medium.lose(1);
  await broker.replication.start();
  const fresh = await ReplicaStage.start({ medium });
  for (const { takenUp } of [broker, fresh]) {
    const known = takenUp.find({ stream: 's', subscriber: 'ada' });
    assert.equal(known?.stored.entry.acked, formatCursor(epoch, 1));
  }
});

test('2.3 a change goes on when what was first in its place cannot be read for a moment', async () => {
  const medium = new SharedMedium();
  const [broker, other] = [await ReplicaStage.start({ medium }), await ReplicaStage.start({ medium })];
  await broker.publish('s', ['1']);
  broker.log.isDeaf = true;
  const { append, next } = broker.log;
  const fail = async (): Promise<never> => {
    throw new LogError('io', 'told to fail');
  };
  broker.log.append = fail;
  const closed = broker.replication.close('s');
  await eventually('it to be tried', () => broker.status.fault !== LOG_HEALTHY);
  broker.log.append = async () => {
    broker.log.append = append;
    await other.publish('s', ['2']);
    broker.log.next = async () => {
      broker.log.next = next;
      return fail();
    };
    return null;
  };
  await eventually('it to be closed', () => other.replica.find('s')?.entry.state === 'closed');
  assert.notEqual(await closed, null);
});
