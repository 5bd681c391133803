import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { range } from '../support/cursor.js';
import { TcpProxy } from '../support/tcp-proxy.js';
import { progressText, resultText } from './counting-tool.js';
import { startFront } from './front.js';
import { connectSdkSseClient } from './sdk-clients.js';
import { SdkServer, type SdkVersion } from './sdk-server.js';

describe('12.10 clients of the SDK over HTTP+SSE', () => {
  for (const version of [1, 2] as SdkVersion[]) {
    it(`12.10 version ${version} has its calls whole, and after a break an error and a session that goes on`, async (context) => {
      const server = await SdkServer.start({ version: 1 });
      context.after(() => server.stop());
      const { broker } = await startFront(context, { '/mcp': server.url });
      const proxy = await TcpProxy.start(broker.port);
      context.after(() => proxy.stop());
      const client = await connectSdkSseClient(version, `http://127.0.0.1:${proxy.port}/mcp`);
      context.after(() => client.close());
      assert.deepEqual(await client.listTools(), ['count']);

      /** The client forgets progress that comes in one piece with the result, so the result waits for it. */
      const whole = async (label: string): Promise<void> => {
        const last = progressText(label, 30);
        const { progress, text } = await client.callTool(
          'count',
          { label, steps: 30, holdAfter: 30 },
          { onProgress: (message) => message === last && server.gates.open(label) },
        );
        assert.deepEqual(
          progress,
          range(1, 30).map((n) => progressText(label, n)),
        );
        assert.equal(text, resultText(label, 30));
      };
      await Promise.all([whole('a'), whole('b'), whole('c')]);

      for (const round of range(1, 3)) {
        const label = `broken ${round}`;
        let cut = false;
        const broken = client.callTool(
          'count',
          { label, steps: 9, holdAfter: 3 },
          {
            onProgress: () => {
              if (!cut) proxy.cutAll();
              cut = true;
            },
          },
        );
        await assert.rejects(broken, { code: -32017 });
        server.gates.open(label);
        await whole(`after ${round}`);
      }
    });
  }
});
