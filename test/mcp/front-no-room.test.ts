import assert from 'node:assert/strict';
import { rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { after, describe, it, type TestContext } from 'node:test';
import { BrokerProcess } from '../support/broker-process.js';
import { eventually } from '../support/deadline.js';
import { freshStream, publishRequest } from '../support/gapless-client.js';
import { HttpConnection } from '../support/http.js';
import { McpClient, messagesOf, untilMessages } from '../support/mcp-client.js';
import { McpSseClient, sseMessagesOf, untilMessage } from '../support/mcp-sse-client.js';
import { McpUpstream, type UpstreamExchange } from '../support/mcp-upstream.js';
import { scrape, total } from '../support/prometheus.js';
import { mountSmallDisk, NO_SMALL_DISK, unmountDisk } from '../support/small-disk.js';

const upstream = await McpUpstream.start();
after(() => upstream.stop());
const FLAGS = ['--mcp', `/mcp=${upstream.url}`, '--mcp-wait-ms', '200'];
const MIB = 1024 * 1024;
const LARGE = 'x'.repeat(100_000);

/** Where there may be no room. */
interface Narrow {
  readonly broker: BrokerProcess;
  fill(): Promise<void>;
  makeRoom(): Promise<void>;
}

async function start(context: TestContext, ...flags: string[]): Promise<BrokerProcess> {
  const broker = await BrokerProcess.start(...FLAGS, ...flags);
  context.after(() => (broker.isRunning ? broker.kill() : undefined));
  return broker;
}

const PLACES: Readonly<Record<string, (context: TestContext) => Promise<Narrow | null>>> = {
  'the memory is full': async (context) => {
    const limits = ['--memory', '1MiB', '--retention-bytes', '16KiB', '--stream-bytes-max', '512KiB'];
    const broker = await start(context, ...limits);
    const connection = await HttpConnection.open(broker.port);
    const crowd: string[] = [];
    return {
      broker,
      async fill() {
        for (let status = 200; status === 200; ) {
          crowd.push(freshStream('crowd'));
          status = (await connection.request(publishRequest(crowd.at(-1) as string, 'x'.repeat(500)))).status;
        }
      },
      async makeRoom() {
        for (const stream of crowd) {
          await connection.request({ method: 'DELETE', path: `/v1/streams/${stream}` });
        }
        connection.destroy();
      },
    };
  },
  'the log cannot commit': async (context) => {
    const disk = mountSmallDisk(16);
    if (disk === null) return null;
    let broker: BrokerProcess | undefined;
    context.after(async () => {
      if (broker?.isRunning === true) await broker.kill();
      unmountDisk(disk);
    });
    broker = await BrokerProcess.start(...FLAGS, '--data-dir', join(disk, 'data'));
    const ballast = join(disk, 'ballast');
    return {
      broker,
      async fill() {
        assert.throws(() => writeFileSync(ballast, Buffer.alloc(16 * MIB)), { code: 'ENOSPC' });
      },
      makeRoom: async () => rmSync(ballast),
    };
  },
};

describe('12.4 no room for what a server says', () => {
  for (const [where, narrow] of Object.entries(PLACES)) {
    it(`12.4 ${where}: each call ends with an error, for whoever reads it and whoever comes for it`, async (context) => {
      const there = await narrow(context);
      if (there === null) return context.skip(NO_SMALL_DISK);
      const { broker } = there;
      const client = await McpClient.open(broker.port);
      const read = await client.call('read');
      const left = await client.call('left');
      await left.untilEvents(1);
      left.cut();
      const atServer = [await upstream.nextCall(), await upstream.nextCall()];
      await there.fill();
      for (const exchange of atServer) floods(exchange);
      assert.equal(await read.untilEnded(), 'end');
      assert.deepEqual([messagesOf(read).at(-1)?.id, messagesOf(read).at(-1)?.error?.code], ['read', -32017]);
      for (const exchange of atServer) await exchange.closed;

      const again = await client.read(left.lastEventId);
      assert.equal(await again.untilEnded(), 'end');
      assert.deepEqual([messagesOf(again)[0]?.id, messagesOf(again)[0]?.error?.code], ['left', -32017]);

      await eventually('both to be counted, and nothing to be left', async () => {
        const metrics = await scrape(broker.port);
        return (
          total(metrics, 'gapless_mcp_calls_failed_total', { reason: 'no_room' }) === 2 &&
          total(metrics, 'gapless_mcp_waiting_characters') === 0 &&
          total(metrics, 'gapless_mcp_calls_under_way') === 0
        );
      });

      await there.makeRoom();
      await eventually('a call to be answered', async () => {
        const call = await client.call('next');
        (await upstream.nextCall()).json({ ok: true });
        await call.untilEnded();
        return messagesOf(call).at(-1)?.result !== undefined;
      });
      await broker.stop();
    });
  }

  it('12.10 the memory is full: whoever speaks HTTP+SSE is sent away, comes back, and is told by an error', async (context) => {
    const { broker, fill, makeRoom } = (await PLACES['the memory is full']?.(context)) as Narrow;
    const client = await McpSseClient.open(broker.port);
    await client.call('mine');
    const there = await upstream.nextCall();
    await fill();
    floods(there);
    assert.equal(await client.first.untilEnded(), 'end');
    await makeRoom();
    const again = await client.read(client.first.lastEventId);
    const { error } = await untilMessage(again, ({ id }) => id === 'mine');
    assert.equal(error?.code, -32017);
    await client.call('next');
    (await upstream.nextCall()).json({ ok: true });
    await untilMessage(again, ({ id }) => id === 'next');
    assert.equal(sseMessagesOf(again).filter(({ id }) => id === 'mine').length, 1);
    again.cut();
    await broker.stop();
  });

  it('12.4 the memory is full: a session’s own stream goes on with what to ask for again', async (context) => {
    upstream.listens = true;
    const { broker, fill, makeRoom } = (await PLACES['the memory is full']?.(context)) as Narrow;
    const client = await McpClient.open(broker.port);
    const own = await client.read();
    const there = (await upstream.nextListener()).stream();
    await fill();
    there.say({ jsonrpc: '2.0', method: 'notifications/message', params: { data: LARGE } });
    await own.untilEnded();
    await makeRoom();
    const again = await client.read();
    assert.equal((await untilMessages(again, 1))[0]?.method, 'notifications/tools/list_changed');
    there.say({ jsonrpc: '2.0', method: 'notifications/message', params: { n: 1 } });
    assert.equal((await untilMessages(again, 2))[1]?.params?.n, 1);
    again.cut();
    upstream.listens = false;
    await broker.stop();
  });
});

/** More than there is room for, and never an end. */
function floods(exchange: UpstreamExchange): void {
  exchange.stream().progress(1);
  for (let sent = 0; sent < 16 * MIB; sent += LARGE.length) {
    exchange.say({ jsonrpc: '2.0', method: 'notifications/message', params: { data: LARGE } });
  }
}
