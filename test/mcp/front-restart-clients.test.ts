import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { BrokerProcess } from '../support/broker-process.js';
import { range } from '../support/cursor.js';
import { makeDirectory, removeDirectory } from '../support/durable-broker.js';
import { NATS_SKIP, NatsServer } from '../support/nats-server.js';
import { startBrokers } from '../support/replicated-brokers.js';
import { TcpBalancer } from '../support/tcp-balancer.js';
import { resultText } from './counting-tool.js';
import { StoredAndPlain, told } from './stored-and-plain.js';

const ENDS: Readonly<Record<string, (broker: BrokerProcess) => Promise<unknown>>> = {
  SIGTERM: (broker) => broker.stop(),
  SIGKILL: (broker) => broker.kill(),
};

describe('clients and servers of the SDK, and fronts that end between them', () => {
  const servers = StoredAndPlain.use();

  for (const [signal, end] of Object.entries(ENDS)) {
    it(`12.11 ${signal}: a call goes on whose server can take it up, exactly; another ends with an error`, async (context) => {
      const directory = makeDirectory();
      context.after(() => removeDirectory(directory));
      // Clients of the SDK try twenty times, and jitter may halve the pause: that has to be longer than a slow start.
      const flags = ['--drain-ms', '0', '--retry-ms', '2000', ...servers.mounts];
      let broker = await BrokerProcess.start('--data-dir', directory, ...flags);
      context.after(() => broker.stop());
      const calls = await servers.hold(broker.port, signal);
      await end(broker);
      broker = await broker.startAgain();
      await servers.release(calls);
      assert.deepEqual(broker.errors, []);
    });
  }

  describe('which share a log, behind a balancer', { skip: NATS_SKIP }, () => {
    it('12.11 (6) go on at another when theirs is killed: exactly, or with an error where the server cannot', async (context) => {
      const nats = await NatsServer.start(context);
      const [first, second] = (await startBrokers(
        context,
        nats,
        2,
        ...['--retry-ms', '1000', ...servers.mounts],
      )) as [BrokerProcess, BrokerProcess];
      const balancer = await TcpBalancer.start();
      context.after(() => balancer.stop());
      balancer.targets = [first.port, second.port];
      const calls = await servers.hold(balancer.port, 'balanced');
      await first.kill();
      await servers.release(calls);
      assert.deepEqual(second.errors, []);
    });

    it('12.11 (6) lose nothing where each of their requests may come to another', async (context) => {
      const nats = await NatsServer.start(context);
      const brokers = await startBrokers(context, nats, 2, ...servers.mounts);
      const balancer = await TcpBalancer.start();
      context.after(() => balancer.stop());
      balancer.targets = brokers.map(({ port }) => port);
      balancer.spreads = true;
      for (const path of servers.paths) {
        const client = await servers.connect(path, balancer.port);
        const calls = range(1, 10).map(async (n) => {
          const progress: string[] = [];
          const label = `${path} ${n}`;
          const { text } = await client.callTool(
            'count',
            { label, steps: 5 },
            { onProgress: (message) => progress.push(message) },
          );
          assert.deepEqual(progress, told(label, 5));
          assert.equal(text, resultText(label, 5));
        });
        await Promise.all(calls);
        await client.close();
      }
      for (const broker of brokers) assert.deepEqual(broker.errors, []);
    });
  });
});
