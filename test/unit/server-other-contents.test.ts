import assert from 'node:assert/strict';
import { test } from 'node:test';
import { LogError } from '#gapless/storage/event-log.js';
import type { SharedMedium } from '../support/memory-replicated-log.js';
import { ReplicaStage, twoBrokers } from './replica-stage.js';

/** A broker that has seen an event of a log which lost it and went on, and has the newest entry of that log all the same. */
async function afterLoss(
  goesOn: (other: ReplicaStage) => Promise<unknown>,
): Promise<{ broker: ReplicaStage; medium: SharedMedium; epoch: string; kept: string }> {
  const { medium, a: broker } = await twoBrokers();
  const { epoch: kept } = await broker.publish('kept', ['1']);
  await broker.publish('s', ['1']);
  const { epoch } = await broker.publish('s', ['seen by one']);
  medium.lose(1);
  broker.log.isDeaf = true;
  const other = await ReplicaStage.start({ medium });
  await goesOn(other);
  await other.publish('kept', ['newest']);
  await broker.replica.catchUp('kept');
  return { broker, medium, epoch, kept };
}

for (const [what, goesOn] of [
  [
    'events that others of their stream took the place of',
    async (other: ReplicaStage) => {
      await other.publish('s', ['2']);
      await other.publish('s', ['3']);
    },
  ],
  [
    'events that those of another stream took the place of',
    (other: ReplicaStage) => other.publish('kept', ['2']),
  ],
] as const) {
  test(`4.4 ${what} are noticed, although the newest entry of the log is known (I3)`, async () => {
    const { broker, epoch, kept } = await afterLoss(goesOn);
    await broker.replication.recovered(new LogError('io', 'told to fail'));
    assert.notEqual(broker.directory.find('s')?.epoch, epoch);
    assert.notEqual(broker.directory.find('s'), null);
    assert.equal(broker.directory.find('kept')?.epoch, kept);
    assert.equal((await broker.data('kept')).at(-1), 'newest');
  });
}

test('4.4 a stream that went on while a broker was away, and let go of what that had, has lost nothing', async () => {
  const { medium, a: broker, b: other } = await twoBrokers();
  const { epoch } = await broker.publish('s', ['1']);
  broker.log.isDeaf = true;
  await other.publish('s', ['2']);
  await other.publish('s', ['3']);
  medium.entries = medium.entries.slice(-1);
  await other.publish('other', ['1']);
  await broker.replication.recovered(new LogError('io', 'told to fail'));
  assert.equal(broker.directory.find('s')?.epoch, epoch);
  assert.equal(broker.positions('s')?.head, 3);
});
