import assert from 'node:assert/strict';
import { describe, it, type TestContext } from 'node:test';
import type { BrokerProcess } from '../support/broker-process.js';
import { eventually } from '../support/deadline.js';
import { request } from '../support/http.js';
import {
  changed,
  firstMessageId,
  McpClient,
  messagesOf,
  numbersOf,
  progressOf,
  restOf,
  untilMessages,
} from '../support/mcp-client.js';
import { McpSseClient, untilMessage } from '../support/mcp-sse-client.js';
import { McpUpstream } from '../support/mcp-upstream.js';
import { NATS_SKIP, NatsServer } from '../support/nats-server.js';
import { startBrokers } from '../support/replicated-brokers.js';
import { SseSubscription } from '../support/sse-client.js';

interface Stage {
  readonly upstream: McpUpstream;
  readonly here: BrokerProcess;
  readonly there: BrokerProcess;
  readonly third: BrokerProcess;
}

async function stage(context: TestContext, brokers = 2): Promise<Stage> {
  const upstream = await McpUpstream.start();
  context.after(() => upstream.stop());
  const nats = await NatsServer.start(context);
  const mcp = ['--mcp', `/mcp=${upstream.url}`, '--drain-ms', '0'];
  const started = await startBrokers(context, nats, brokers, ...mcp);
  // They listen before that, and what is asked meanwhile waits.
  await Promise.all(started.map(({ port }) => untilBegun(port)));
  const [here, there, third] = started as [BrokerProcess, BrokerProcess, BrokerProcess];
  return { upstream, here, there, third };
}

/** Resolves when the front has what it needs of the log. */
function untilBegun(port: number): Promise<unknown> {
  const isBegun = (): Promise<boolean> =>
    request(port, { path: '/v1/mcp' }).then(
      ({ status }) => status === 200,
      () => false,
    );
  return eventually('the front to have begun', isBegun, 60_000);
}

const ENDS: Readonly<Record<string, (broker: BrokerProcess) => Promise<unknown>>> = {
  SIGTERM: (broker) => broker.stop(),
  SIGKILL: (broker) => broker.kill(),
};

describe('fronts that share a log', { skip: NATS_SKIP, concurrency: 2 }, () => {
  it('12.11 (6) any of them serves a session, and reads on in a call that another has under way', async (context) => {
    const { upstream, here, there } = await stage(context);
    const client = await McpClient.open(here.port);
    const elsewhere = client.at(there.port);

    const call = await client.call(1);
    const answer = (await upstream.nextCall()).stream();
    answer.progress(1).progress(2);
    await untilMessages(call, 2);
    const again = await elsewhere.read(firstMessageId(call));
    await untilMessages(again, 1);
    answer.progress(3).finish({ done: true });
    assert.equal(await again.untilEnded(), 'end');
    assert.deepEqual(progressOf(again), [2, 3]);
    assert.deepEqual(messagesOf(again).at(-1)?.result, { done: true });

    const other = await elsewhere.call(2);
    const asked = await upstream.nextCall();
    assert.equal(asked.header('mcp-session-id'), 'upstream-session');
    asked.json({ by: 'there' });
    await other.untilEnded();
    assert.deepEqual(messagesOf(other).at(-1)?.result, { by: 'there' });
    // Answered there, and read here again from its beginning.
    const [result, ...more] = await restOf(client, other.events[0]?.id);
    assert.deepEqual([result?.result, more], [{ by: 'there' }, []]);
    assert.equal((await client.get(other.events.at(-1)?.id)).status, 405);
    assert.equal(upstream.seen.filter((seen) => seen === 'POST initialize').length, 1);

    assert.equal((await elsewhere.delete()).status, 200);
    await eventually('the other to know', async () => (await client.notify('ping')).status === 404);
    assert.equal((await elsewhere.notify('ping')).status, 404);
    for (const broker of [here, there]) assert.deepEqual(broker.errors, []);
  });

  for (const [signal, end] of Object.entries(ENDS)) {
    it(`12.11 (6, 20) after a ${signal} the other takes up what can be taken up, and ends what cannot`, async (context) => {
      const { upstream, here, there } = await stage(context);
      upstream.listens = true;
      const client = await McpClient.open(here.port);
      const own = await client.read();
      (await upstream.nextListener()).stream().say(changed(1), 'own-1').say(changed(2), 'own-2');
      await untilMessages(own, 2);
      const resumable = await client.call(1);
      (await upstream.nextCall()).stream().progress(1, 'first').progress(2, 'second');
      await untilMessages(resumable, 2);
      const lost = await client.call('lost');
      (await upstream.nextCall()).stream().progress(1).progress(2);
      await untilMessages(lost, 2);

      await end(here);
      const elsewhere = client.at(there.port);
      const ending = restOf(elsewhere, firstMessageId(lost));
      const again = await elsewhere.read(resumable.lastEventId);
      const resumed = await upstream.nextListener();
      assert.equal(resumed.header('last-event-id'), 'second');
      resumed.stream().progress(3, 'third');
      await untilMessages(again, 1);
      resumed.say({ jsonrpc: '2.0', id: 1, result: {} }, 'fourth').response.end();
      assert.equal(await again.untilEnded(), 'end');
      assert.deepEqual(progressOf(again), [3]);
      assert.deepEqual(messagesOf(again).at(-1)?.result, {});

      const [progress, last, ...more] = await ending;
      assert.deepEqual(more, []);
      assert.equal(progress?.params?.progress, 2);
      assert.equal(last?.id, 'lost');
      assert.deepEqual([last?.error?.code, last?.error?.data], [-32016, { reason: 'broken' }]);

      const ownAgain = await elsewhere.read(firstMessageId(own));
      const listened = await upstream.nextListener();
      assert.equal(listened.header('last-event-id'), 'own-2');
      listened.stream().say(changed(3), 'own-3');
      await untilMessages(ownAgain, 2);
      assert.deepEqual(numbersOf(ownAgain), [2, 3]);
      ownAgain.cut();
      assert.deepEqual(there.errors, []);
    });
  }

  it('12.11 (6) a call survives the broker that has taken it up as well', async (context) => {
    const { upstream, here, there, third } = await stage(context, 3);
    upstream.listens = true;
    const client = await McpClient.open(here.port);
    const call = await client.call(1);
    (await upstream.nextCall()).stream().progress(1, 'first');
    await untilMessages(call, 1);
    await here.kill();
    const second = await client.at(there.port).read(call.lastEventId);
    (await upstream.nextListener()).stream().progress(2, 'second');
    await untilMessages(second, 1);
    await there.kill();
    const last = await client.at(third.port).read(second.lastEventId);
    const resumed = await upstream.nextListener();
    assert.equal(resumed.header('last-event-id'), 'second');
    resumed
      .stream()
      .progress(3, 'third')
      .say({ jsonrpc: '2.0', id: 1, result: { done: true } }, 'fourth');
    resumed.response.end();
    assert.equal(await last.untilEnded(), 'end');
    assert.deepEqual(progressOf(last), [3]);
    assert.deepEqual(messagesOf(last).at(-1)?.result, { done: true });
    assert.deepEqual(third.errors, []);
  });

  it('12.5, 12.11 an answer to a request of the server is passed on once, whichever broker it comes to again', async (context) => {
    const { upstream, here, there } = await stage(context);
    const client = await McpClient.open(here.port);
    const call = await client.call(1);
    const asking = (await upstream.nextCall()).stream();
    asking.say({ jsonrpc: '2.0', id: 'asked', method: 'sampling/createMessage', params: {} });
    await untilMessages(call, 1);
    const answer = { jsonrpc: '2.0', id: 'asked', result: {} };
    const seen = () => upstream.seen.filter((method) => method === 'POST').length;
    assert.equal((await client.at(there.port).post(answer)).status, 202);
    assert.equal(seen(), 1);
    await eventually('the other broker to know of the answer', async () => {
      const before = seen();
      assert.equal((await client.post(answer)).status, 202);
      return seen() === before;
    });
    asking.finish({ done: true });
    await call.untilEnded();
    assert.deepEqual(messagesOf(call).at(-1)?.result, { done: true });
  });

  it('12.5, 12.11 a call that was cancelled at another broker is let go of', async (context) => {
    const { upstream, here, there } = await stage(context);
    const client = await McpClient.open(here.port);
    const call = await client.call(1);
    const exchange = (await upstream.nextCall()).stream().progress(1);
    await untilMessages(call, 1);
    assert.equal(
      (await client.at(there.port).notify('notifications/cancelled', { requestId: 1 })).status,
      202,
    );
    await exchange.closed;
    assert.equal(await call.untilEnded(), 'end');
    assert.deepEqual([progressOf(call), messagesOf(call).length], [[1], 1]);
    for (const broker of [here, there]) assert.deepEqual(broker.errors, []);
  });

  it('12.8, 12.10 clients without sessions, and those of HTTP+SSE, are served by the one that they ask', async (context) => {
    const { upstream, here } = await stage(context, 1);
    const called = SseSubscription.open(here.port, 'a call', {
      request: {
        path: '/mcp',
        headers: {
          Accept: 'application/json, text/event-stream',
          'Content-Type': 'application/json',
          'MCP-Protocol-Version': '2026-07-28',
        },
        body: JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'tools/call', params: {} }),
      },
      keepText: true,
    });
    (await upstream.nextCall()).stream().progress(1).finish({ ok: true });
    const stateless = await called;
    assert.equal(await stateless.untilEnded(), 'end');
    assert.deepEqual(progressOf(stateless), [1]);
    assert.deepEqual(messagesOf(stateless).at(-1)?.result, { ok: true });

    const old = await McpSseClient.open(here.port);
    await old.call('old');
    (await upstream.nextCall()).json({ old: true });
    const answer = await untilMessage(old.first, ({ id }) => id === 'old');
    assert.deepEqual(answer.result, { old: true });
    old.first.cut();
    assert.deepEqual(here.errors, []);
  });

  it('12.11 a broker that was only slow appends nothing to what another has taken over', async (context) => {
    const { upstream, here, there } = await stage(context);
    upstream.listens = true;
    const client = await McpClient.open(here.port);
    const call = await client.call(1);
    const slow = (await upstream.nextCall()).stream();
    slow.progress(1, 'first');
    await untilMessages(call, 1);
    await here.standStill();
    const again = await client.at(there.port).read(call.lastEventId);
    const resumed = await upstream.nextListener();
    assert.equal(resumed.header('last-event-id'), 'first');
    resumed.stream();
    here.signal('SIGCONT');
    slow.progress(2, 'second').say({ jsonrpc: '2.0', id: 1, result: { from: 'slow' } }, 'third');
    slow.response.end();
    resumed.progress(2, 'second').say({ jsonrpc: '2.0', id: 1, result: { from: 'taken' } }, 'third');
    resumed.response.end();
    assert.equal(await again.untilEnded(), 'end');
    assert.deepEqual(progressOf(again), [2]);
    assert.deepEqual(messagesOf(again).at(-1)?.result, { from: 'taken' });
    assert.equal(await call.untilEnded(), 'end');
    assert.deepEqual(messagesOf(call).at(-1)?.result, { from: 'taken' });
  });
});
