import assert from 'node:assert/strict';
import { beforeEach, describe, test } from 'node:test';
import { formatCursor } from '#gapless/core/cursor.js';
import { LOG_HEALTHY } from '#gapless/ring/log-status.js';
import type { StoredEntry } from '#gapless/storage/replicated-log.js';
import { eventually } from '../support/deadline.js';
import type { SharedMedium } from '../support/memory-replicated-log.js';
import { type ReplicaStage, settle, twoBrokers } from './replica-stage.js';

/** Positions are given again, so what follows an entry that is lost may seem to follow the one in its place. */
describe('4.4 a loss of the log that not every broker has seen', () => {
  let medium: SharedMedium;
  let a: ReplicaStage;
  let b: ReplicaStage;
  let epoch: string;

  /** The log loses an event that only `b` knows, and `b` does not hear what comes next. */
  beforeEach(async () => {
    ({ medium, a, b } = await twoBrokers());
    ({ epoch } = await a.publish('s', ['1']));
    a.log.isDeaf = true;
    await b.publish('s', ['lost']);
    medium.lose(1);
    a.log.isDeaf = false;
  });

  const beganAnew = async (): Promise<void> => {
    const epochs = () => new Set([a, b].map(({ directory }) => directory.find('s')?.epoch));
    const areInStep = () => [a, b].every(({ status }) => status.fault === LOG_HEALTHY);
    await eventually('both to begin anew', () => areInStep() && epochs().size === 1 && !epochs().has(epoch));
    await a.publish('s', ['anew']);
    for (const broker of [a, b]) assert.deepEqual((await broker.data('s')).slice(-1), ['anew']);
    assert.deepEqual(await a.data('s'), await b.data('s'));
  };

  test('shows by an entry that follows what has taken the place (I3)', async () => {
    b.log.isDeaf = true;
    await a.publish('s', ['in its place']);
    b.log.isDeaf = false;
    const after = a.publish('s', ['after']);
    await settle();
    assert.notEqual(
      b.positions('s')?.head,
      3,
      'what follows another event than the second one is no third one',
    );
    await beganAnew();
    await after.catch(() => undefined);
  });

  test('shows by an entry that follows what is lost (I3)', async () => {
    b.log.isDeaf = true;
    await a.publish('s', ['in its place']);
    // Nothing tells the log that this is to follow another entry than the one that is there.
    await b.publish('s', ['after']).catch(() => undefined);
    b.log.isDeaf = false;
    await beganAnew();
  });

  test('shows by an entry that follows one that came later and seemed not to count (I3)', async () => {
    b.log.isDeaf = true;
    await a.publish('another', ['in its place']);
    b.log.isDeaf = false;
    await a.publish('s', ['seems to be late']);
    await a.publish('s', ['after']).catch(() => undefined);
    await beganAnew();
  });

  test('shows by the position of an append, where one that is known has had it (I3)', async () => {
    b.log.isExact = false;
    b.log.isDeaf = true;
    const lastAt = medium.lastAt;
    const placed = await b.publish('s', ['in its place']).catch(() => null);
    assert.notEqual(placed?.epoch, epoch);
    const after = medium.entries.filter(({ at, entry }) => at > lastAt && entry.epoch === epoch);
    assert.equal(after.length, 1, 'it is not tried again');
    b.log.isDeaf = false;
    await beganAnew();
  });

  test('takes no stream away that has begun anew, where one goes on with what is lost', async () => {
    const { entry, body } = medium.newest('s') as StoredEntry;
    await b.replication.start();
    await beganAnew();
    const previous = medium.lastAt + 10;
    medium.put('s', { ...entry, previous, previousWriter: 'other', writer: 'other' }, body, null);
    await settle();
    await eventually('it to be there', () => [a, b].every(({ directory }) => directory.find('s') !== null));
    await beganAnew();
  });

  test('of what a named subscriber has acknowledged, shows by what follows something in its place', async () => {
    await b.replication.start();
    await beganAnew();
    const now = a.directory.find('s')?.epoch as string;
    await a.publish('s', ['2', '3', '4', '5']);
    await a.subscribers.join('s', 'ada', 'earliest');
    await b.subscribers.acknowledge('s', 'ada', { epoch: now, seq: 1 });
    a.log.isDeaf = true;
    await b.subscribers.acknowledge('s', 'ada', { epoch: now, seq: 4 });
    medium.lose(1);
    a.log.isDeaf = false;
    b.log.isDeaf = true;
    await a.subscribers.acknowledge('s', 'ada', { epoch: now, seq: 2 });
    b.log.isDeaf = false;
    await a.subscribers.acknowledge('s', 'ada', { epoch: now, seq: 3 });
    const ackedAt = ({ takenUp }: ReplicaStage) =>
      takenUp.find({ stream: 's', subscriber: 'ada' })?.stored.entry.acked;
    await eventually('what is lost to be written again', () => ackedAt(a) === formatCursor(now, 4));
    assert.equal(ackedAt(b), formatCursor(now, 4));
  });
});
