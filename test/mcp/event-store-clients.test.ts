import assert from 'node:assert/strict';
import { describe, it, type TestContext } from 'node:test';
import { GaplessEventStore } from '#gapless/mcp-sdk/mcp-sdk.js';
import { useBroker } from '../support/broker-process.js';
import { range } from '../support/cursor.js';
import { TcpProxy } from '../support/tcp-proxy.js';
import { progressText, resultText } from './counting-tool.js';
import { RawSession } from './raw-session.js';
import { connectSdkClient } from './sdk-clients.js';
import { SdkServer, type SdkVersion } from './sdk-server.js';
import { ServerProcess } from './server-process.js';

const VERSIONS: SdkVersion[] = [1, 2];
const CALL_LOST = -32016;
const HISTORY_GONE = -32017;
/** Long after the end of a call must have been told, and long before the client would give up by itself. */
const CALL_TIMEOUT_MS = 20_000;

describe('clients of the SDK and an event store', () => {
  const broker = useBroker();

  async function startServer(
    context: TestContext,
    version: SdkVersion,
    limits: { eventsMax?: number } = {},
  ): Promise<{ server: SdkServer; proxy: TcpProxy; url: string }> {
    const server = await SdkServer.start({
      version,
      storeOf: (session) =>
        new GaplessEventStore({ broker: { url: `http://127.0.0.1:${broker.port}` }, session, ...limits }),
    });
    context.after(() => server.stop());
    const proxy = await TcpProxy.start(server.port);
    context.after(() => proxy.stop());
    return { server, proxy, url: `http://127.0.0.1:${proxy.port}/mcp` };
  }

  for (const serverVersion of VERSIONS) {
    for (const clientVersion of VERSIONS) {
      const who = `a client of version ${clientVersion} at a server of version ${serverVersion}`;

      it(`${who} loses and repeats no progress over cuts, and gets the result`, async (context) => {
        const { server, proxy, url } = await startServer(context, serverVersion);
        const client = await connectSdkClient(clientVersion, url);
        context.after(() => client.close());
        const cutAt = new Set([3, 9]);
        const outcome = await client.callTool(
          'count',
          { label: who, steps: 40, holdAfter: 10 },
          {
            onProgress: (message) => {
              const n = Number(message.split(' ').at(-1));
              if (!cutAt.delete(n)) return;
              proxy.cutAll();
              if (n === 9) server.gates.open(who);
            },
          },
        );
        assert.deepEqual(
          outcome.progress,
          range(1, 40).map((n) => progressText(who, n)),
        );
        assert.equal(outcome.text, resultText(who, 40));
      });

      it(`row 10: ${who} is told at once that the history is gone`, async (context) => {
        const { server, proxy, url } = await startServer(context, serverVersion, { eventsMax: 5 });
        const client = await connectSdkClient(clientVersion, url);
        context.after(() => client.close());
        let isCut = false;
        await assert.rejects(
          client.callTool(
            'count',
            { label: who, steps: 500, holdAfter: 10 },
            {
              timeoutMs: CALL_TIMEOUT_MS,
              onProgress: () => {
                if (isCut) return;
                isCut = true;
                // All that follows goes nowhere, and there is more of it than is kept.
                proxy.cutAll();
                server.gates.open(who);
              },
            },
          ),
          (error: { code?: number; data?: { reason?: string } }) => {
            assert.equal(error.code, HISTORY_GONE, String(error));
            assert.equal(error.data?.reason, 'evicted');
            return true;
          },
        );
        const after = await client.callTool('count', { label: 'after', steps: 2 });
        assert.equal(after.text, resultText('after', 2));
      });
    }
  }

  it('row 6: a server is killed and another, of the newer version, has its sessions: what was kept is given, what is lost is told', async (context) => {
    const start = async (version: SdkVersion): Promise<ServerProcess> => {
      const child = await ServerProcess.start(version, broker.port);
      context.after(() => child.kill());
      return child;
    };
    const first = await start(1);
    const session = await RawSession.open(first.url);
    const done = await session.call('done', 'count', { label: 'done', steps: 5 });
    const primed = await done.priming();
    await done.result('done');
    const lost = await session.call('lost', 'count', { label: 'lost', steps: 5, holdAfter: 3 });
    const [{ id: lastId } = { id: '' }] = await lost.count(3);
    await first.kill();

    const second = await start(2);
    const moved = Object.assign(Object.create(RawSession.prototype) as RawSession, session, {
      url: second.url,
    });
    const again = await moved.get(primed);
    await again.result('done');
    const told = again.messages.flatMap(({ message: { params } }) => params?.message ?? []);
    assert.deepEqual(
      told,
      range(1, 5).map((n) => progressText('done', n)),
    );
    again.cut();
    const ended = await moved.get(lastId);
    const { error } = await ended.result('lost');
    assert.equal(error?.code, CALL_LOST);
    const rest = ended.messages.flatMap(({ message: { params } }) => params?.message ?? []);
    assert.deepEqual(
      rest,
      range(2, 3).map((n) => progressText('lost', n)),
    );
    ended.cut();
    const next = await moved.call('next', 'count', { label: 'next', steps: 1 });
    await next.result('next');
    next.cut();
  });
});
