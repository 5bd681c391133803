import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import { GaplessEventStore } from '#gapless/mcp-sdk/mcp-sdk.js';
import { BrokerProcess } from '../support/broker-process.js';
import { range } from '../support/cursor.js';
import { eventually } from '../support/deadline.js';
import { makeDirectory, removeDirectory } from '../support/durable-broker.js';
import { progressText, resultText } from './counting-tool.js';
import { type CallOutcome, connectSdkClient, type SdkClient } from './sdk-clients.js';
import { SdkServer, type SdkVersion } from './sdk-server.js';

const VERSIONS: readonly SdkVersion[] = [1, 2];
const ENDS: Readonly<Record<string, (broker: BrokerProcess) => Promise<unknown>>> = {
  SIGTERM: (broker) => broker.stop(),
  SIGKILL: (broker) => broker.kill(),
};
const STEPS = 40;
const HELD_AFTER = 15;
/** Clients of the SDK try twenty times, and jitter may halve the pause: that has to be longer than a slow start of the front. */
const FLAGS = ['--drain-ms', '0', '--retry-ms', '2000'];

/** A call that is held in its midst, by a client of its own. */
interface HeldCall {
  readonly client: SdkClient;
  readonly label: string;
  readonly progress: string[];
  readonly outcome: Promise<CallOutcome>;
}

async function hold(version: SdkVersion, url: string, label: string): Promise<HeldCall> {
  const client = await connectSdkClient(version, url);
  const progress: string[] = [];
  const outcome = client.callTool(
    'count',
    { label, steps: STEPS, holdAfter: HELD_AFTER },
    { onProgress: (message) => progress.push(message) },
  );
  outcome.catch(() => undefined);
  await eventually('the call to be held', () => progress.length === HELD_AFTER);
  return { client, label, progress, outcome };
}

const told = (label: string, last: number) => range(1, last).map((n) => progressText(label, n));

describe('clients and servers of the SDK, and a durable front that starts again between them', () => {
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

  for (const [signal, end] of Object.entries(ENDS)) {
    it(`12.11 ${signal}: a call goes on whose server can take it up, exactly; another ends with an error`, async (context) => {
      const directory = makeDirectory();
      context.after(() => removeDirectory(directory));
      const mounts = [...servers].flatMap(([path, { url }]) => ['--mcp', `${path}=${url}`]);
      let broker = await BrokerProcess.start('--data-dir', directory, ...FLAGS, ...mounts);
      context.after(() => broker.stop());
      const calls = new Map<string, HeldCall>();
      for (const path of servers.keys()) {
        const version = path.endsWith('1') ? 1 : 2;
        const label = `${signal} ${path}`;
        calls.set(path, await hold(version, `http://127.0.0.1:${broker.port}${path}`, label));
      }
      await end(broker);
      broker = await broker.startAgain();
      for (const [path, server] of servers) server.gates.open(calls.get(path)?.label as string);
      for (const version of VERSIONS) {
        const stored = calls.get(`/stored${version}`) as HeldCall;
        assert.equal((await stored.outcome).text, resultText(stored.label, STEPS));
        assert.deepEqual(stored.progress, told(stored.label, STEPS));
        const plain = calls.get(`/plain${version}`) as HeldCall;
        await assert.rejects(plain.outcome, { code: -32016, data: { reason: 'broken' } });
        assert.deepEqual(plain.progress, told(plain.label, HELD_AFTER));
        for (const { client } of [stored, plain]) {
          const next = await client.callTool('count', { label: 'next', steps: 3 });
          assert.equal(next.text, resultText('next', 3));
          await client.close();
        }
      }
      assert.deepEqual(broker.errors, []);
    });
  }
});
