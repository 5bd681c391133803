import assert from 'node:assert/strict';
import { describe, it, type TestContext } from 'node:test';
import { range } from '../support/cursor.js';
import { seededPrng } from '../support/prng.js';
import { TcpProxy } from '../support/tcp-proxy.js';
import { progressText, resultText } from './counting-tool.js';
import { startFront } from './front.js';
import { RawSession } from './raw-session.js';
import { callAndResume, type ResumedCall } from './resuming-call.js';
import { connectSdkClient } from './sdk-clients.js';
import { SdkServer, type SdkVersion } from './sdk-server.js';

/** `MCP_CUTS=1000` makes a long run of it. */
const CUTS = Number(process.env.MCP_CUTS ?? 30);
const SESSIONS = 3;
/** Calls of a session that are open at a time. */
const CALLS = 3;
/** The head of an answer and what primes it: a client that breaks within has nothing to come back with. */
const HEAD_BYTES = 1024;

describe('calls through the front over connections that are cut at any byte', () => {
  async function startCutFront(context: TestContext, threads = 1): Promise<{ url: string; proxy: TcpProxy }> {
    const server = await SdkServer.start({ version: 2 });
    context.after(() => server.stop());
    const { broker } = await startFront(context, { '/mcp': server.url }, '--threads', String(threads));
    const proxy = await TcpProxy.start(broker.port);
    context.after(() => proxy.stop());
    return { url: `http://127.0.0.1:${proxy.port}/mcp`, proxy };
  }

  for (const threads of [1, 3]) {
    it(`have every progress once and in order, nothing of another call, and their result, with --threads ${threads}`, async (context) => {
      const prng = seededPrng(context);
      const { url, proxy } = await startCutFront(context, threads);
      const sessions = await Promise.all(range(1, SESSIONS).map(() => RawSession.open(url)));
      proxy.cutEachAfter(() => prng.between(1, 4000));
      let begun = 0;
      let ended = 0;
      const run = async (session: RawSession): Promise<void> => {
        while (proxy.cuts < CUTS) {
          const id = ++begun;
          const label = `call ${id}`;
          const [steps, padding] = [prng.between(1, 120), prng.below(100)];
          const call = await callAndResume(session, id, { label, steps, padding });
          if (call.neverBegan) continue;
          assertWhole(call, id, { label, steps, padding });
          ended++;
        }
      };
      await Promise.all(sessions.flatMap((session) => range(1, CALLS).map(() => run(session))));
      context.diagnostic(`${proxy.cuts} cuts, ${ended} of ${begun} calls ended`);
      assert.ok(ended > 0);
    });
  }

  for (const version of [1, 2] as SdkVersion[]) {
    it(`are whole for a client of the SDK, version ${version}`, async (context) => {
      const prng = seededPrng(context);
      const { url, proxy } = await startCutFront(context);
      const client = await connectSdkClient(version, url);
      context.after(() => client.close());
      proxy.cutAll();
      // Their connections are used again, and an answer without its head cannot be resumed.
      proxy.cutEachAfter(() => prng.between(HEAD_BYTES, 8000), { ofRequest: true });
      for (let n = 1; proxy.cuts < CUTS / 3; n++) {
        const label = `call ${n}`;
        const { progress, text } = await client.callTool('count', { label, steps: 60, padding: 100 });
        assert.deepEqual(
          progress,
          range(1, 60).map((step) => progressText(label, step, 100)),
        );
        assert.equal(text, resultText(label, 60));
      }
      proxy.cutEachAfter(() => Number.POSITIVE_INFINITY);
    });
  }
});

function assertWhole(
  { messages }: ResumedCall,
  id: number,
  { label, steps, padding }: { label: string; steps: number; padding: number },
): void {
  const last = messages.at(-1);
  assert.equal(last?.id, id);
  assert.deepEqual(last?.result?.content, [{ type: 'text', text: resultText(label, steps) }]);
  const progress = messages.slice(0, -1).map(({ params }) => params);
  const expected = range(1, steps).map((n) => ({
    progressToken: label,
    progress: n,
    total: steps,
    message: progressText(label, n, padding),
  }));
  assert.deepEqual(progress, expected);
}
