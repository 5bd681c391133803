import assert from 'node:assert/strict';
import { mkdtemp, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, describe, it, type TestContext } from 'node:test';
import { fileURLToPath } from 'node:url';
import { range } from '../support/cursor.js';
import { TcpProxy } from '../support/tcp-proxy.js';
import { progressText, resultText } from './counting-tool.js';
import { type Front, launchFront, startFront } from './front.js';
import { PEERS_MISSING, type Peer, peerFile, startPeer } from './peers.js';
import { connectSdkClient, connectSdkSseClient, connectStdioClient, type SdkClient } from './sdk-clients.js';

type Connect = (url: string) => Promise<SdkClient>;

const CLIENTS: Readonly<Record<string, Connect>> = {
  'a client of the SDK, version 1': (url) => connectSdkClient(1, url),
  'a client of the SDK, version 2': (url) => connectSdkClient(2, url),
  'mcp-remote': (url) =>
    connectStdioClient([
      process.execPath,
      peerFile('mcpRemote'),
      url,
      '--allow-http',
      '--transport',
      'http-only',
    ]),
};

const SSE_CLIENTS: Readonly<Record<string, Connect>> = {
  'a client of the SDK, version 1,': (url) => connectSdkSseClient(1, url),
  'a client of the SDK, version 2,': (url) => connectSdkSseClient(2, url),
  'mcp-remote': (url) =>
    connectStdioClient([
      process.execPath,
      peerFile('mcpRemote'),
      url,
      '--allow-http',
      '--transport',
      'sse-only',
    ]),
};
const LONG = { name: 'trigger-long-running-operation', steps: 8 };

describe('servers and clients as they are published, and the front between them', {
  skip: PEERS_MISSING,
}, () => {
  let everything: Peer;
  let fastmcp: Peer;
  let front: Front;
  /** That server-filesystem may write to. */
  let folder: string;
  before(async () => {
    everything = await startPeer([peerFile('everything'), 'streamableHttp']);
    fastmcp = await startPeer([fileURLToPath(new URL('./fastmcp-process.js', import.meta.url))]);
    folder = await mkdtemp(join(tmpdir(), 'mcp-files-'));
    front = await launchFront({
      '/everything': everything.url,
      '/fastmcp': fastmcp.url,
      '/everything-stdio': `stdio:${process.execPath} ${peerFile('everything')} stdio`,
      '/files': `stdio:${process.execPath} ${peerFile('filesystem')} ${folder}`,
    });
  });
  after(async () => {
    await front.stop();
    await everything.stop();
    await fastmcp.stop();
    await rm(folder, { recursive: true });
  });

  /** A client behind a network that is cut when a call has come so far. */
  async function connect(
    context: TestContext,
    connectTo: Connect,
    path: string,
  ): Promise<{ client: SdkClient; proxy: TcpProxy }> {
    const proxy = await TcpProxy.start(front.broker.port);
    context.after(() => proxy.stop());
    const client = await connectTo(`http://127.0.0.1:${proxy.port}${path}`);
    context.after(() => client.close());
    return { client, proxy };
  }

  const cutAt =
    (proxy: TcpProxy, ...steps: number[]) =>
    (message: string): void => {
      if (steps.includes(Number(message.split(' ').at(-1)))) proxy.cutAll();
    };

  it('12.6 (4) server-everything starts again under a client, which notices nothing, although it is answered 400', async (context) => {
    const first = await startPeer([peerFile('everything'), 'streamableHttp']);
    context.after(() => first.stop());
    const { urlOf } = await startFront(context, { '/mcp': first.url });
    const client = await connectSdkClient(1, urlOf('/mcp'));
    context.after(() => client.close());
    const tools = await client.listTools();
    await first.stop();
    const second = await startPeer(
      [peerFile('everything'), 'streamableHttp'],
      Number(new URL(first.url).port),
    );
    context.after(() => second.stop());
    assert.deepEqual(await client.listTools(), tools);
  });

  for (const [who, connectTo] of Object.entries(SSE_CLIENTS)) {
    it(`12.10 ${who} over HTTP+SSE uses server-everything, and goes on after a cut`, async (context) => {
      const { client, proxy } = await connect(context, connectTo, '/everything');
      const call = () => client.callTool('get-sum', { a: 2, b: 40 });
      assert.match((await call()).text, /42/);
      let isCut = false;
      const long = client.callTool(
        LONG.name,
        { duration: 60, steps: 300 },
        {
          onProgress: () => {
            if (!isCut) proxy.cutAll();
            isCut = true;
          },
        },
      );
      // `mcp-remote` notices the break itself, and says so in its own words.
      await assert.rejects(long, (error: Error) => !/timed out/i.test(error.message));
      assert.match((await call()).text, /42/);
    });
  }

  for (const [who, connectTo] of Object.entries(CLIENTS)) {
    it(`${who} gets all of a long call of server-everything over cuts`, async (context) => {
      const direct = await connectSdkClient(1, everything.url);
      const tools = await direct.listTools();
      await direct.close();
      const { client, proxy } = await connect(context, connectTo, '/everything');
      assert.deepEqual(await client.listTools(), tools);
      const { progress, text } = await client.callTool(
        LONG.name,
        { duration: 1, steps: LONG.steps },
        { onProgress: cutAt(proxy, 2, 5) },
      );
      assert.deepEqual(progress, range(1, LONG.steps).map(String));
      assert.match(text, /Long running operation completed/);
    });

    it(`${who} gets all of a long call of a FastMCP server over cuts`, async (context) => {
      const { client, proxy } = await connect(context, connectTo, '/fastmcp');
      const { progress, text } = await client.callTool(
        'count',
        { label: 'fast', steps: 20 },
        { onProgress: cutAt(proxy, 3, 12) },
      );
      assert.deepEqual(
        progress,
        range(1, 20).map((n) => progressText('fast', n)),
      );
      assert.equal(text, resultText('fast', 20));
    });

    it(`${who} uses server-everything over its standard streams`, async (context) => {
      const { client, proxy } = await connect(context, connectTo, '/everything-stdio');
      const { progress, text } = await client.callTool(
        LONG.name,
        { duration: 1, steps: LONG.steps },
        { onProgress: cutAt(proxy, 2, 5) },
      );
      assert.deepEqual(progress, range(1, LONG.steps).map(String));
      assert.match(text, /Long running operation completed/);
    });

    it(`${who} writes and reads files through server-filesystem`, async (context) => {
      const { client } = await connect(context, connectTo, '/files');
      const path = join(folder, `${who.replaceAll(/\W/g, '')}.txt`);
      await client.callTool('write_file', { path, content: 'Both lines\nare here.' });
      assert.equal(await readFile(path, 'utf8'), 'Both lines\nare here.');
      const { text } = await client.callTool('read_text_file', { path });
      assert.equal(text, 'Both lines\nare here.');
    });
  }
});
