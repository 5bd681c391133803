import assert from 'node:assert/strict';
import { after, before } from 'node:test';
import { GaplessEventStore } from '#gapless/mcp-sdk/mcp-sdk.js';
import { BrokerProcess } from '../support/broker-process.js';
import { range } from '../support/cursor.js';
import { eventually } from '../support/deadline.js';
import { progressText, resultText } from './counting-tool.js';
import { type CallOutcome, connectSdkClient, type SdkClient } from './sdk-clients.js';
import { SdkServer, type SdkVersion } from './sdk-server.js';

const VERSIONS: readonly SdkVersion[] = [1, 2];
const STEPS = 40;
const HELD_AFTER = 15;

/** A call that is held in its midst, by a client of its own. */
interface HeldCall {
  readonly path: string;
  readonly client: SdkClient;
  readonly label: string;
  readonly progress: string[];
  readonly outcome: Promise<CallOutcome>;
}

/** What a call said up to a step. */
export const told = (label: string, last: number): string[] =>
  range(1, last).map((n) => progressText(label, n));

/**
 * Servers of both versions of the SDK, for the suite that this is called in: each with an event store, whose clients can
 * be taken up, and without. By the paths at which fronts have them.
 */
export class StoredAndPlain {
  readonly #servers = new Map<string, SdkServer>();

  static use(): StoredAndPlain {
    const servers = new StoredAndPlain();
    /** Where the servers with an event store keep their sessions. */
    let store: BrokerProcess;
    before(async () => {
      store = await BrokerProcess.start();
      const broker = { url: `http://127.0.0.1:${store.port}` };
      for (const version of VERSIONS) {
        const storeOf = (session: string) => new GaplessEventStore({ broker, session });
        servers.#servers.set(`/stored${version}`, await SdkServer.start({ version, storeOf }));
        servers.#servers.set(`/plain${version}`, await SdkServer.start({ version }));
      }
    });
    after(async () => {
      for (const server of servers.#servers.values()) await server.stop();
      await store.stop();
    });
    return servers;
  }

  get paths(): string[] {
    return [...this.#servers.keys()];
  }

  /** Flags of a front. */
  get mounts(): string[] {
    return [...this.#servers].flatMap(([path, { url }]) => ['--mcp', `${path}=${url}`]);
  }

  /** A client of the server's version. */
  connect(path: string, port: number): Promise<SdkClient> {
    return connectSdkClient(path.endsWith('1') ? 1 : 2, `http://127.0.0.1:${port}${path}`);
  }

  /** Has a call of each server held in its midst. */
  hold(port: number, name: string): Promise<HeldCall[]> {
    return Promise.all(
      this.paths.map(async (path) => {
        const client = await this.connect(path, port);
        const label = `${name} ${path}`;
        const progress: string[] = [];
        const outcome = client.callTool(
          'count',
          { label, steps: STEPS, holdAfter: HELD_AFTER },
          { onProgress: (message) => progress.push(message) },
        );
        outcome.catch(() => undefined);
        await eventually('the call to be held', () => progress.length === HELD_AFTER);
        return { path, client, label, progress, outcome };
      }),
    );
  }

  /** Lets them go on: those that their server can take up are exact, the others end with an error, and all sessions go on. */
  async release(calls: readonly HeldCall[]): Promise<void> {
    for (const { path, label } of calls) this.#servers.get(path)?.gates.open(label);
    for (const { path, client, label, progress, outcome } of calls) {
      if (path.startsWith('/stored')) {
        assert.equal((await outcome).text, resultText(label, STEPS));
        assert.deepEqual(progress, told(label, STEPS));
      } else {
        await assert.rejects(outcome, { code: -32016, data: { reason: 'broken' } });
        assert.deepEqual(progress, told(label, HELD_AFTER));
      }
      const next = await client.callTool('count', { label: 'next', steps: 3 });
      assert.equal(next.text, resultText('next', 3));
      await client.close();
    }
  }
}
