import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import { GaplessEventStore } from '#gapless/mcp-sdk/mcp-sdk.js';
import { BrokerProcess } from '../support/broker-process.js';
import { range } from '../support/cursor.js';
import { eventually } from '../support/deadline.js';
import { NATS_SKIP, NatsServer } from '../support/nats-server.js';
import { startBrokers } from '../support/replicated-brokers.js';
import { TcpBalancer } from '../support/tcp-balancer.js';
import { progressText, resultText } from './counting-tool.js';
import { connectSdkClient } from './sdk-clients.js';
import { SdkServer, type SdkVersion } from './sdk-server.js';

const VERSIONS: readonly SdkVersion[] = [1, 2];
const STEPS = 40;
const HELD_AFTER = 15;

const told = (label: string, last: number) => range(1, last).map((n) => progressText(label, n));

describe('clients of the SDK behind a balancer of fronts that share a log', { skip: NATS_SKIP }, () => {
  /** Where the servers with an event store keep their sessions. */
  let store: BrokerProcess;
  const servers = new Map<string, SdkServer>();
  before(async () => {
    store = await BrokerProcess.start();
    const broker = { url: `http://127.0.0.1:${store.port}` };
    for (const version of VERSIONS) {
      const storeOf = (session: string) => new GaplessEventStore({ broker, session });
      servers.set(`/stored${version}`, await SdkServer.start({ version, storeOf }));
      servers.set(`/plain${version}`, await SdkServer.start({ version }));
    }
  });
  after(async () => {
    for (const server of servers.values()) await server.stop();
    await store.stop();
  });

  it('12.11 (6) go on at another when theirs is killed: exactly, or with an error where the server cannot', async (context) => {
    const mounts = [...servers].flatMap(([path, { url }]) => ['--mcp', `${path}=${url}`]);
    const nats = await NatsServer.start(context);
    const [first, second] = (await startBrokers(context, nats, 2, '--retry-ms', '1000', ...mounts)) as [
      BrokerProcess,
      BrokerProcess,
    ];
    const balancer = await TcpBalancer.start();
    context.after(() => balancer.stop());
    balancer.targets = [first.port, second.port];
    const calls = await Promise.all(
      [...servers].map(async ([path, { gates }]) => {
        const client = await connectSdkClient(
          path.endsWith('1') ? 1 : 2,
          `http://127.0.0.1:${balancer.port}${path}`,
        );
        const progress: string[] = [];
        const outcome = client.callTool(
          'count',
          { label: path, steps: STEPS, holdAfter: HELD_AFTER },
          { onProgress: (message) => progress.push(message) },
        );
        outcome.catch(() => undefined);
        await eventually('the call to be held', () => progress.length === HELD_AFTER);
        return { path, client, progress, outcome, gates };
      }),
    );
    await first.kill();
    for (const { path, gates } of calls) gates.open(path);
    for (const { path, client, progress, outcome } of calls) {
      if (path.startsWith('/stored')) {
        assert.equal((await outcome).text, resultText(path, STEPS));
        assert.deepEqual(progress, told(path, STEPS));
      } else {
        await assert.rejects(outcome, { code: -32016, data: { reason: 'broken' } });
        assert.deepEqual(progress, told(path, HELD_AFTER));
      }
      const next = await client.callTool('count', { label: 'next', steps: 3 });
      assert.equal(next.text, resultText('next', 3));
      await client.close();
    }
    assert.deepEqual(second.errors, []);
  });

  it('12.11 (6) lose nothing where each of their requests may come to another', async (context) => {
    const mounts = [...servers].flatMap(([path, { url }]) => ['--mcp', `${path}=${url}`]);
    const nats = await NatsServer.start(context);
    const brokers = await startBrokers(context, nats, 2, ...mounts);
    const balancer = await TcpBalancer.start();
    context.after(() => balancer.stop());
    balancer.targets = brokers.map(({ port }) => port);
    balancer.spreads = true;
    for (const path of servers.keys()) {
      const client = await connectSdkClient(
        path.endsWith('1') ? 1 : 2,
        `http://127.0.0.1:${balancer.port}${path}`,
      );
      const texts = await Promise.all(
        range(1, 10).map(async (n) => {
          const progress: string[] = [];
          const label = `${path} ${n}`;
          const { text } = await client.callTool(
            'count',
            { label, steps: 5 },
            { onProgress: (message) => progress.push(message) },
          );
          assert.deepEqual(progress, told(label, 5));
          return text;
        }),
      );
      assert.deepEqual(
        texts,
        range(1, 10).map((n) => resultText(`${path} ${n}`, 5)),
      );
      await client.close();
    }
    for (const broker of brokers) assert.deepEqual(broker.errors, []);
  });
});
