import assert from 'node:assert/strict';
import { afterEach, describe, it } from 'node:test';
import { fileURLToPath } from 'node:url';
import { BrokerProcess } from '../support/broker-process.js';
import { range } from '../support/cursor.js';
import { freePort } from '../support/free-port.js';
import { GapChecker } from '../support/gap-checker.js';
import { freshStream, publish, publishLines } from '../support/gapless-client.js';
import { HttpConnection } from '../support/http.js';
import { Publisher } from '../support/publisher.js';
import { Reader } from '../support/reader.js';

/** Takes the first ports that the broker has found to be free. */
const PORT_THIEF = fileURLToPath(new URL('../support/port-thief.js', import.meta.url));

describe('the broker is killed', () => {
  let broker: BrokerProcess | undefined;

  afterEach(async () => {
    if (broker?.isRunning) await broker.kill();
  });

  it('SIGKILL in the middle of publishing: no reader of before is ever carried on into the new epoch (I3)', async () => {
    const killed = await BrokerProcess.start('--threads', '2');
    broker = killed;
    const stream = freshStream('killed');
    const checker = new GapChecker();
    const publisher = new Publisher({ port: killed.port, stream, name: 'before', checker });
    await publisher.publish(10);
    const readers = range(1, 20).map(
      (index) => new Reader({ port: killed.port, stream, name: `reader-${index}`, checker }),
    );
    const subscriptions = await Promise.all(readers.map((reader) => reader.connect()));
    await Promise.all(subscriptions.map((subscription) => subscription?.untilEvents(10)));

    for (const _round of range(1, 20)) await publisher.publish(5);
    const unanswered = publisher.publish(5).catch(() => undefined);
    await killed.kill();
    await unanswered;
    for (const subscription of subscriptions) assert.equal(await subscription?.untilEnded(), 'cut');

    broker = await killed.startAgain();
    const next = new Publisher({ port: broker.port, stream, name: 'after', checker });
    await next.publish(400);
    for (const reader of readers) {
      assert.equal(await reader.connect(), undefined, 'a cursor of the dead epoch was accepted');
      await reader.catchUp(400);
    }
    assert.ok(readers.every(({ refusals }) => refusals[0]?.reason === 'epoch_changed'));
    checker.assertClean();
  });

  it('a port that is taken is one clear line on stderr and exit code 1', async () => {
    broker = await BrokerProcess.start();
    await assert.rejects(
      BrokerProcess.start('--port', String(broker.port)),
      /ended \(1\).*the port is in use/s,
    );
    const connection = await HttpConnection.open(broker.port);
    await publish(connection, freshStream('unharmed'), 'one');
    await publishLines(connection, freshStream('unharmed'), ['two']);
    connection.destroy();
  });

  for (const threads of ['1', '3']) {
    it(`a free port that another program takes before it listens is not missed, with --threads ${threads}`, async () => {
      broker = await BrokerProcess.launch({
        flags: ['--port', '0', '--threads', threads],
        nodeFlags: ['--import', PORT_THIEF],
      });
      await publish(broker.port, freshStream('free-port'), 'one');
    });
  }

  it('of brokers that are started on one port at once only one comes up, and the others say that it is in use', async (context) => {
    const port = String(await freePort());
    const starts = await Promise.allSettled(range(1, 3).map(() => BrokerProcess.start('--port', port)));
    const started = starts.flatMap((start) => (start.status === 'fulfilled' ? [start.value] : []));
    context.after(() => Promise.all(started.map((process) => process.kill())));
    assert.equal(started.length, 1);
    for (const start of starts) {
      if (start.status === 'rejected') assert.match(String(start.reason), /ended \(1\).*the port is in use/s);
    }
  });
});
