import assert from 'node:assert/strict';
import { test } from 'node:test';
import { SharedMedium } from '../support/memory-replicated-log.js';
import { ReplicaStage } from './replica-stage.js';

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
  medium.entries.pop();
  medium.lastAt--;
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
  medium.entries.pop();
  medium.lastAt--;
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
