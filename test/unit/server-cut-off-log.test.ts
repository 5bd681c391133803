import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { PRODUCER } from '#gapless/core/producer-record.js';
import { range } from '../support/cursor.js';
import { SharedMedium } from '../support/memory-replicated-log.js';
import { oneBroker, ReplicaStage, twoBrokers } from './replica-stage.js';

const claim = (seq: number) => ({ kind: PRODUCER, digest: 'd'.repeat(32), epoch: 0, seq }) as const;

describe('a machine of the log that is cut off from the others', () => {
  /** A broker that asks it, and has heard of nothing since. @param before done by others before that. */
  async function cutOff(
    before?: (others: ReplicaStage) => Promise<unknown>,
  ): Promise<{ others: ReplicaStage; broker: ReplicaStage }> {
    const { medium, a: others, b: broker } = await twoBrokers();
    for (const { log } of [others, broker]) log.isExact = false;
    await before?.(others);
    broker.log.isDeaf = true;
    broker.log.cutOff = medium.copy();
    return { others, broker };
  }

  test('4.4 has lost nothing, whatever it says (I3)', async () => {
    const medium = new SharedMedium();
    const broker = await ReplicaStage.start({ medium });
    const { epoch } = await broker.publish('s', ['1']);
    const cutOff = medium.copy();
    await broker.publish('s', ['2']);
    await broker.publish('later', ['1']);
    broker.log.cutOff = cutOff;
    await broker.replication.start();
    assert.equal(broker.directory.find('s')?.epoch, epoch);
    assert.deepEqual(await broker.data('s'), ['1', '2']);
    assert.deepEqual(await broker.data('later'), ['1']);
  });

  test('4.4 is not believed that an event is not there yet (I2)', async () => {
    const { others, broker } = await cutOff((others) => others.publish('s', ['1']));
    const { epoch, last } = await others.publish('s', ['2']);
    await broker.replication.refresh('s', (stream) => stream?.hasReached({ epoch, seq: last }) === true);
    assert.equal(broker.positions('s')?.head, last);
  });

  test('2.4 is not believed that a stream is not there', async () => {
    const { others, broker } = await cutOff();
    const { epoch } = await others.publish('s', ['1']);
    assert.equal((await broker.replication.resolve('s', false))?.epoch, epoch);
  });

  test('2.3 is not believed that there is nothing to remove', async () => {
    const { others, broker } = await cutOff();
    await others.publish('s', ['1']);
    assert.equal(await broker.replication.remove('s'), true);
  });

  test('4.8 gives no named subscriber again what it has acknowledged', async () => {
    const { others, broker } = await cutOff(async (others) => {
      await others.publish('s', ['1']);
      await others.subscribers.join('s', 'ada', 'earliest');
    });
    const { epoch } = await others.publish('s', ['2']);
    await others.subscribers.acknowledge('s', 'ada', { epoch, seq: 2 });
    const joined = await broker.subscribers.join('s', 'ada', null);
    assert.deepEqual(joined?.start, { epoch, seq: 2 });
  });

  test('3.3, 3.4 refuses nothing for what stands in the log by now', async () => {
    const { others, broker } = await cutOff((others) => others.publish('s', ['1'], { claim: claim(0) }));
    const { epoch, last } = await others.publish('s', ['2'], { claim: claim(1) });
    const [next, expected] = await Promise.all([
      broker.publish('s', ['3'], { claim: claim(2) }),
      broker.publish('s', ['4'], { ifHead: { epoch, seq: last + 1 } }),
    ]);
    assert.deepEqual([next.first, expected.first], [last + 1, last + 2]);
  });

  test('is asked once by all who ask at a time, and not where something was found', async () => {
    const { others, broker } = await cutOff((others) => others.publish('s', ['1']));
    let confirmations = 0;
    const { confirm } = broker.log;
    broker.log.confirm = () => {
      confirmations++;
      return confirm.call(broker.log);
    };
    const { epoch } = await others.publish('other', ['1']);
    await broker.replication.refresh('s');
    assert.equal(confirmations, 0);
    const resolved = await Promise.all(
      ['other', ...range(1, 50).map((count) => `none ${count}`)].map((name) =>
        broker.replication.resolve(name, false),
      ),
    );
    assert.equal(resolved[0]?.epoch, epoch);
    assert.ok(confirmations <= 2, `${confirmations} confirmations`);
  });

  test('where there is one machine nobody else has to confirm', async () => {
    const { broker } = await oneBroker();
    broker.log.confirm = () => assert.fail('nobody is there');
    assert.equal(await broker.replication.resolve('none', false), null);
  });
});
