import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { LogError } from '#gapless/storage/event-log.js';
import type { Follower, StoredEntry } from '#gapless/storage/replicated-log.js';
import { eventually } from '../support/deadline.js';
import type { SharedMedium } from '../support/memory-replicated-log.js';
import { type ReplicaStage, twoBrokers } from './replica-stage.js';

/** Another machine's entry in the place of one: of another broker, with as many events and bytes. */
function instead({ stream, at, entry, body }: StoredEntry): StoredEntry {
  const other = Buffer.from(body).toString('latin1').replace('kept', 'lost');
  return { stream, at, entry: { ...entry, writer: 'other' }, body: Buffer.from(other, 'latin1') };
}

/** What a machine has that has another entry in the place of one. */
function withOther(medium: SharedMedium, place: StoredEntry): SharedMedium {
  const copy = medium.copy();
  copy.entries = copy.entries.map((stored) => (stored === place ? instead(stored) : stored));
  return copy;
}

/** All have the stream under one epoch, which is another than before. */
async function untilRenewed(name: string, epoch: string, ...brokers: ReplicaStage[]): Promise<void> {
  const epochs = () => brokers.map(({ directory }) => directory.find(name)?.epoch);
  await eventually(
    `${name} to begin anew`,
    () => epochs().every((now) => now !== undefined && now !== epoch) && new Set(epochs()).size === 1,
  );
}

describe('machines of a log that have different entries in one place', () => {
  /** Two brokers; what the second follows is told by `hear`, of what the others have taken it hears nothing. */
  async function apart(): Promise<{
    medium: SharedMedium;
    a: ReplicaStage;
    b: ReplicaStage;
    epoch: string;
    hear: (stored: StoredEntry) => void;
  }> {
    const { medium, a, b } = await twoBrokers();
    for (const { log } of [a, b]) log.isExact = false;
    const { follow } = b.log;
    let heard: Follower | null = null;
    b.log.follow = (lastAt, follower) => {
      heard = follower;
      return follow.call(b.log, lastAt, follower);
    };
    await b.replication.start();
    const { epoch } = await a.publish('s', ['first']);
    b.log.isDeaf = true;
    return { medium, a, b, epoch, hear: (stored) => heard?.received(stored) };
  }

  test('4.4 are noticed with the next entry, and the stream begins anew for all (I3)', async () => {
    const { medium, a, b, epoch, hear } = await apart();
    await a.publish('s', ['kept']);
    hear(instead(medium.newest('s') as StoredEntry));
    assert.deepEqual(
      [a, b].map(({ replica }) => replica.find('s')?.entry.head),
      [2, 2],
    );
    b.log.isDeaf = false;
    await a.publish('s', ['next']);
    await untilRenewed('s', epoch, a, b);
    assert.equal((await b.publish('s', ['anew'])).first, 1);
    assert.deepEqual(await a.data('s'), ['anew']);
  });

  test('4.4 are noticed by the others where one who has taken up the wrong one goes on with it (I3)', async () => {
    const { medium, a, b, epoch, hear } = await apart();
    await a.publish('s', ['kept']);
    hear(instead(medium.newest('s') as StoredEntry));
    b.log.isDeaf = false;
    await b.publish('s', ['next']).catch(() => undefined);
    await untilRenewed('s', epoch, a, b);
  });

  test('4.4 are noticed where the others have the entry of another stream in that place (I3)', async () => {
    const { medium, a, b, epoch, hear } = await apart();
    await a.publish('t', ['other']);
    const there = medium.newest('t') as StoredEntry;
    await a.publish('s', ['kept']);
    hear({ ...instead(medium.newest('s') as StoredEntry), at: there.at });
    b.log.isDeaf = false;
    await a.publish('s', ['next']);
    await untilRenewed('s', epoch, a, b);
  });

  test('4.4 are noticed before what one of them has is given to who reads below the ring (I3)', async () => {
    const { medium, a, b, epoch } = await apart();
    await a.publish('s', ['kept']);
    const there = medium.newest('s') as StoredEntry;
    await a.publish('s', ['next']);
    b.log.isDeaf = false;
    await b.replication.start();
    b.log.cutOff = withOther(medium, there);
    const stream = b.replica.find('s');
    assert.ok(stream !== undefined);
    assert.equal((await b.reader.read(stream, 0, 1))?.lastSeq, 1);
    await assert.rejects(b.reader.read(stream, 1, 1), LogError);
    await untilRenewed('s', epoch, a, b);
  });

  test('4.4 give nobody below the ring what no later entry follows (I3)', async () => {
    const { medium, a, b } = await apart();
    await a.publish('t', ['other']);
    const other = medium.newest('t') as StoredEntry;
    await a.publish('s', ['kept']);
    const kept = medium.newest('s') as StoredEntry;
    await a.publish('s', ['next']);
    b.log.isDeaf = false;
    await b.replication.start();
    const stream = b.replica.find('s');
    assert.ok(stream !== undefined);
    await b.reader.read(stream, 0, 1);
    const changed = new Map([
      [other, { ...instead(kept), at: other.at }],
      [kept, { ...other, at: kept.at }],
    ]);
    b.log.cutOff = medium.copy();
    b.log.cutOff.entries = medium.entries.map((stored) => changed.get(stored) ?? stored);
    assert.equal(await b.reader.read(stream, 1, 1), null);
  });

  test('4.4 are noticed where the newest entry is another one than was taken up (I3)', async () => {
    const { medium, a, b, epoch } = await apart();
    b.log.isDeaf = false;
    await b.replication.start();
    await a.publish('s', ['kept']);
    b.log.cutOff = withOther(medium, medium.newest('s') as StoredEntry);
    await assert.rejects(b.data('s', 1), LogError);
    await untilRenewed('s', epoch, a, b);
  });

  test('4.4 are noticed by who reads on where another machine answers than before (I3)', async () => {
    const { medium, a, b, epoch } = await apart();
    for (const line of ['kept', 'next', 'last']) await a.publish('s', [line]);
    b.log.isDeaf = false;
    await b.replication.start();
    const [, , second] = medium.entries as [StoredEntry, StoredEntry, StoredEntry];
    const stream = b.replica.find('s');
    assert.ok(stream !== undefined);
    await b.reader.read(stream, 0, 1);
    b.log.cutOff = withOther(medium, second);
    await assert.rejects(b.reader.read(stream, 1, 1), LogError);
    await untilRenewed('s', epoch, a, b);
  });
});
