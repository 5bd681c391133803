import assert from 'node:assert/strict';
import { after, describe, it } from 'node:test';
import { useBroker } from '../support/broker-process.js';
import { eventually } from '../support/deadline.js';
import { McpUpstream } from '../support/mcp-upstream.js';
import { METRIC } from '../support/metric-names.js';
import { scrape, total } from '../support/prometheus.js';
import { TcpProxy } from '../support/tcp-proxy.js';
import { connectSdkClient, connectSdkSseClient } from './sdk-clients.js';
import type { SdkVersion } from './sdk-server.js';

const upstream = await McpUpstream.start();
after(() => upstream.stop());

/** Together more than the kernel takes between the broker and a client that does not read. */
const MESSAGES = 3000;
const PADDING = '.'.repeat(8000);
const FIRST = 'the first';

const CLIENTS = { 'Streamable HTTP': connectSdkClient, 'HTTP+SSE': connectSdkSseClient } as const;

describe('12.4 a client that reads too slowly', () => {
  const broker = useBroker(
    ...['--mcp', `/mcp=${upstream.url}`, '--retry-ms', '20'],
    ...['--retention-bytes', '64KiB', '--stream-bytes-max', '256KiB'],
  );

  for (const [transport, connect] of Object.entries(CLIENTS)) {
    for (const version of [1, 2] as SdkVersion[]) {
      it(`12.4 over ${transport}, of version ${version} of the SDK, is told once it reads again, and its call ends`, async (context) => {
        const proxy = await TcpProxy.start(broker.port);
        context.after(() => proxy.stop());
        const client = await connect(version, `http://127.0.0.1:${proxy.port}/mcp`);
        context.after(() => client.close());
        const begun = await scrape(broker.port);
        let stalled = (): void => undefined;
        const isStalled = new Promise<void>((resolve) => {
          stalled = resolve;
        });
        const call = client.callTool(
          'any',
          {},
          {
            onProgress: (message) => {
              if (message !== FIRST) return;
              proxy.stall();
              stalled();
            },
          },
        );
        const rejected = assert.rejects(call, { code: -32017 });
        const there = await upstream.nextCall();
        const { progressToken } = there.message.params?._meta as { progressToken: number };
        const progress = (n: number, message: string): void => {
          const params = { progressToken, progress: n, message };
          there.say({ jsonrpc: '2.0', method: 'notifications/progress', params });
        };
        there.stream();
        progress(0, FIRST);
        await isStalled;
        for (let n = 1; n <= MESSAGES; n++) progress(n, PADDING);
        there.finish({ content: [] });
        await eventually('the reader to be overtaken', async () => {
          const metrics = await scrape(broker.port);
          return total(metrics, METRIC.overtaken) > total(begun, METRIC.overtaken);
        });
        proxy.flow();
        const flowsAt = performance.now();
        await rejected;
        context.diagnostic(`told after ${Math.round(performance.now() - flowsAt)} ms`);

        const next = client.callTool('any', {});
        const atServer = await upstream.nextCall();
        atServer.json({ content: [{ type: 'text', text: 'whole' }] });
        assert.equal((await next).text, 'whole');
      });
    }
  }
});
