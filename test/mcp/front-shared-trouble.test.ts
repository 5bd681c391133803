import assert from 'node:assert/strict';
import { describe, it, type TestContext } from 'node:test';
import { jetstreamManager } from '@nats-io/jetstream';
import { connect } from '@nats-io/transport-node';
import type { BrokerProcess } from '../support/broker-process.js';
import { eventually } from '../support/deadline.js';
import { deleteStream, freshStream, publishRequest } from '../support/gapless-client.js';
import { HttpConnection, request } from '../support/http.js';
import {
  initializeRequest,
  McpClient,
  messagesOf,
  progressOf,
  untilMessages,
} from '../support/mcp-client.js';
import { McpUpstream } from '../support/mcp-upstream.js';
import { NATS_SKIP, NatsServer } from '../support/nats-server.js';
import { scrape, total } from '../support/prometheus.js';
import { startBroker, startBrokers } from '../support/replicated-brokers.js';
import type { SseSubscription } from '../support/sse-client.js';

const KIB = 1024;
/** A broker keeps so much of a message for itself. */
const HEADER_BYTES = 64 * KIB;

interface Stage {
  readonly upstream: McpUpstream;
  readonly nats: NatsServer;
  readonly broker: BrokerProcess;
}

async function stage(context: TestContext, config: string, ...flags: string[]): Promise<Stage> {
  const upstream = await McpUpstream.start();
  context.after(() => upstream.stop());
  const nats = await NatsServer.start(context, config);
  const broker = await startBroker(context, nats, '--mcp', `/mcp=${upstream.url}`, ...flags);
  return { upstream, nats, broker };
}

function lastOf(stream: SseSubscription) {
  const { id, error, result } = messagesOf(stream).at(-1) ?? {};
  return { id, code: error?.code, reason: error?.data?.reason, result };
}

const failures = async ({ port }: BrokerProcess, reason: string) =>
  total(await scrape(port), 'gapless_mcp_calls_failed_total', { reason });

/** A whole call, once the log takes one again. */
async function callsAgain(client: McpClient, upstream: McpUpstream): Promise<void> {
  upstream.intercept = (exchange) => {
    const { id, method } = exchange.message;
    if (method !== 'tools/call' || !String(id).startsWith('next')) return false;
    exchange.json({ ok: true });
    return true;
  };
  let tries = 0;
  await eventually('a call to be answered', async () => {
    const answer = await client.post({ jsonrpc: '2.0', id: `next ${++tries}`, method: 'tools/call' });
    return answer.status === 200 && answer.text.includes('"ok":true');
  });
}

/** Two calls under way, each of which has said something: `read` goes on being read, and `left` is to be cut. */
async function twoCalls({ upstream, broker }: Pick<Stage, 'upstream' | 'broker'>) {
  const client = await McpClient.open(broker.port);
  const read = await client.call('read');
  const exchanges = [(await upstream.nextCall()).stream().progress(1)];
  const left = await client.call('left');
  exchanges.push((await upstream.nextCall()).stream().progress(1));
  await Promise.all([untilMessages(read, 1), untilMessages(left, 1)]);
  return { client, read, left, exchanges };
}

/** Publishes until the log takes no publish any more. @returns the stream that has it all. */
async function fill({ port }: BrokerProcess): Promise<string> {
  const crowd = freshStream('crowd');
  const connection = await HttpConnection.open(port);
  for (let status = 200; status !== 507; ) {
    status = (await connection.request(publishRequest(crowd, 'x'.repeat(20_000)))).status;
  }
  connection.destroy();
  return crowd;
}

/** What publishes leave free is for all else that is written: has the log take none of that either. */
async function takeRest({ url }: NatsServer): Promise<void> {
  const connection = await connect({ servers: url });
  const { streams } = await jetstreamManager(connection, { checkAPI: false });
  const { state } = await streams.info('GAPLESS');
  await streams.update('GAPLESS', { max_bytes: state.bytes });
  await connection.close();
}

describe('a front on a shared log that fails', { skip: NATS_SKIP, concurrency: 2 }, () => {
  it('12.4 (20) is away in the midst of a call: all that the server says meanwhile comes when it is back', async (context) => {
    const { upstream, nats, broker } = await stage(context, '');
    const { client, read, left, exchanges } = await twoCalls({ upstream, broker });
    await nats.kill();
    left.cut();
    for (const exchange of exchanges) exchange.progress(2).finish({ done: true });
    await nats.startAgain();
    assert.equal(await read.untilEnded(), 'end');
    assert.deepEqual(progressOf(read), [1, 2]);
    assert.deepEqual(lastOf(read).result, { done: true });
    const again = await eventually('the log to be back', () =>
      client.read(left.lastEventId).catch(() => undefined),
    );
    assert.equal(await again.untilEnded(), 'end');
    assert.deepEqual(progressOf(again), [2]);
    assert.deepEqual(lastOf(again).result, { done: true });
    await callsAgain(client, upstream);
  });

  for (const how of ['is gone', 'does not answer']) {
    it(`12.4 (20) ${how} for longer than is waited for: each call ends with an error once it is back`, async (context) => {
      const { upstream, nats, broker } = await stage(context, '', '--mcp-wait-ms', '3s');
      const { client, read, left, exchanges } = await twoCalls({ upstream, broker });
      if (how === 'is gone') await nats.kill();
      else await nats.standStill();
      left.cut();
      for (const exchange of exchanges) exchange.progress(2).say({ jsonrpc: '2.0', method: 'x' });
      await eventually('both to be given up', async () => (await failures(broker, 'no_room')) === 2);
      for (const exchange of exchanges) exchange.finish({ done: true });
      if (how === 'is gone') await nats.startAgain();
      else nats.signal('SIGCONT');
      assert.equal(await read.untilEnded(), 'end');
      assert.deepEqual([lastOf(read).id, lastOf(read).code], ['read', -32017]);
      const again = await eventually('the log to be back', () =>
        client.read(left.lastEventId).catch(() => undefined),
      );
      assert.equal(await again.untilEnded(), 'end');
      assert.deepEqual([lastOf(again).id, lastOf(again).code], ['left', -32017]);
      await callsAgain(client, upstream);
      // A call is over a moment after its answer is there.
      await eventually('nothing to be under way', async () => {
        return total(await scrape(broker.port), 'gapless_mcp_calls_under_way') === 0;
      });
    });
  }

  it('12.4 (20) is full: a call ends with an error, and the next is taken when there is room', async (context) => {
    const limit = ['--log-bytes-max', '1MiB', '--mcp-wait-ms', '3s'];
    const { upstream, broker } = await stage(context, '', ...limit);
    const client = await McpClient.open(broker.port);
    const call = await client.call('mine');
    const atServer = (await upstream.nextCall()).stream().progress(1);
    await untilMessages(call, 1);
    const crowd = await fill(broker);
    atServer.finish({ done: true });
    assert.equal(await call.untilEnded(), 'end');
    assert.deepEqual([lastOf(call).id, lastOf(call).code], ['mine', -32017]);
    await eventually('it to be counted', async () => (await failures(broker, 'no_room')) === 1);
    await deleteStream(broker.port, crowd);
    await callsAgain(client, upstream);
  });

  it('12.11 is full when a front begins: who comes meanwhile is refused, and it begins when there is room', async (context) => {
    const upstream = await McpUpstream.start();
    context.after(() => upstream.stop());
    const nats = await NatsServer.start(context);
    const limit = ['--log-bytes-max', '1MiB'];
    const other = await startBroker(context, nats, ...limit);
    const crowd = await fill(other);
    await takeRest(nats);
    const mcp = ['--mcp', `/mcp=${upstream.url}`, ...limit];
    const [broker, stopped] = await startBrokers(context, nats, 2, ...mcp);
    assert.ok(broker !== undefined && stopped !== undefined);
    for (const { port } of [broker, stopped]) {
      const refused = await request(port, initializeRequest({}));
      assert.equal(refused.status, 507);
      assert.equal(refused.json<{ error: { code: number } }>().error.code, -32019);
    }
    stopped.signal('SIGTERM');
    assert.deepEqual(await stopped.untilExit(), { code: 0, signal: null });
    await deleteStream(other.port, crowd);
    await eventually('the front to begin', async () => {
      return (await request(broker.port, initializeRequest({}))).status === 200;
    });
    await callsAgain(await McpClient.open(broker.port), upstream);
  });

  it('12.4 a message that is larger than the log takes ends its call, and what comes at once need not fit together', async (context) => {
    const { upstream, broker } = await stage(context, `max_payload: ${HEADER_BYTES + 32 * KIB}`);
    const client = await McpClient.open(broker.port);
    const large = {
      jsonrpc: '2.0',
      method: 'notifications/message',
      params: { data: 'x'.repeat(100 * KIB) },
    } as const;
    const call = await client.call('large');
    const atServer = (await upstream.nextCall()).stream().progress(1);
    atServer.say(large).finish({ done: true });
    assert.equal(await call.untilEnded(), 'end');
    assert.deepEqual(progressOf(call), [1]);
    assert.deepEqual([lastOf(call).id, lastOf(call).reason], ['large', 'message_too_large']);

    const many = await client.call('many');
    const burst = (await upstream.nextCall()).stream();
    const part = { ...large, params: { data: 'x'.repeat(10 * KIB) } };
    for (let n = 0; n < 50; n++) burst.say(part);
    burst.finish({ done: true });
    assert.equal(await many.untilEnded(), 'end');
    assert.equal(messagesOf(many).length, 51);
    assert.deepEqual(lastOf(many).result, { done: true });
  });

  it('12.4, 12.11 nobody comes back for a call whose broker died: it goes with time, and who comes then is told', async (context) => {
    const upstream = await McpUpstream.start();
    context.after(() => upstream.stop());
    const nats = await NatsServer.start(context);
    const mcp = ['--mcp', `/mcp=${upstream.url}`, '--mcp-ttl-ms', '1000'];
    const [here, there] = (await startBrokers(context, nats, 2, ...mcp)) as [BrokerProcess, BrokerProcess];
    const client = await McpClient.open(here.port);
    const call = await client.call('mine');
    const exchange = (await upstream.nextCall()).stream().progress(1, 'first');
    await untilMessages(call, 1);
    await here.kill();
    await exchange.closed;
    // What stays longer: the session, what the ids are signed with, and what each broker says of itself.
    const streams = async () => total(await scrape(there.port), 'gapless_streams');
    await eventually('the stream of the call to go', async () => (await streams()) <= 4);
    const again = await client.at(there.port).read(call.lastEventId);
    assert.equal(await again.untilEnded(), 'end');
    assert.deepEqual([lastOf(again).id, lastOf(again).code], ['mine', -32017]);
    await callsAgain(client.at(there.port), upstream);
    assert.deepEqual(there.errors, []);
  });
});
