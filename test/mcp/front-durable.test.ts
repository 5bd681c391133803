import assert from 'node:assert/strict';
import { after, describe, it } from 'node:test';
import { BrokerProcess, describeOnEdges, useBroker } from '../support/broker-process.js';
import { range } from '../support/cursor.js';
import { eventually } from '../support/deadline.js';
import { makeDirectory, removeDirectory } from '../support/durable-broker.js';
import { encodeRequest, HttpConnection, type HttpResponse, request } from '../support/http.js';
import { messagesOf, progressOf, untilMessages } from '../support/mcp-client.js';
import { McpUpstream, type UpstreamExchange } from '../support/mcp-upstream.js';
import { scrape, total } from '../support/prometheus.js';
import { SseSubscription } from '../support/sse-client.js';
import { TcpProxy } from '../support/tcp-proxy.js';
import { progressText, resultText } from './counting-tool.js';
import { launchFront, startFront } from './front.js';
import { connectStatelessClient, startStatelessServer } from './stateless-server.js';

const upstream = await McpUpstream.start();
after(() => upstream.stop());

const REVISION = { 'MCP-Protocol-Version': '2026-07-28' };
const DURABLE = ['--mcp', `/mcp=${upstream.url}`, '--mcp', `/other=${upstream.url}`];

/** A client that does what it is told. */
class Caller {
  constructor(readonly port: number) {}

  /** The answer as it comes. */
  call(id: number | string, headers: Record<string, string> = {}, method = 'tools/call') {
    return SseSubscription.open(this.port, 'a call', { request: post(id, headers, method), keepText: true });
  }

  /** The answer whole. */
  post(id: number | string, headers: Record<string, string> = {}): Promise<HttpResponse> {
    return request(this.port, post(id, headers));
  }

  read(lastEventId: string) {
    return SseSubscription.open(this.port, 'a call', { request: get(lastEventId), keepText: true });
  }

  get(lastEventId: string, path = '/mcp'): Promise<HttpResponse> {
    return request(this.port, { ...get(lastEventId), path });
  }
}

function post(id: number | string, headers: Record<string, string>, method = 'tools/call') {
  const media = { Accept: 'application/json, text/event-stream', 'Content-Type': 'application/json' };
  const params = { name: 'count' };
  return {
    path: '/mcp',
    headers: { ...media, ...REVISION, 'Mcp-Method': method, ...headers },
    body: JSON.stringify({ jsonrpc: '2.0', id, method, params }),
  };
}

function get(lastEventId: string) {
  const headers = { Accept: 'text/event-stream', 'Last-Event-ID': lastEventId, ...REVISION };
  return { path: '/mcp', headers };
}

function lastIdOf(stream: SseSubscription): string {
  return stream.events.at(-1)?.id ?? '';
}

/** A call whose answer has begun, with its first progress. */
async function begun(called: Promise<SseSubscription>): Promise<[SseSubscription, UpstreamExchange]> {
  const there = await upstream.nextCall();
  there.stream().progress(1);
  const call = await called;
  await untilMessages(call, 1);
  return [call, there];
}

describeOnEdges('12.12 durable responses', ['--mcp-response-grace-ms', '1m', ...DURABLE], (broker) => {
  const caller = () => new Caller(broker.port);

  it('12.12 a call goes on when its client hangs up, and the rest is read after the last id, once and in order', async () => {
    const [call, there] = await begun(caller().call('a'));
    there.progress(2);
    await untilMessages(call, 2);
    call.cut();
    there.progress(3);
    const again = await caller().read(lastIdOf(call));
    await untilMessages(again, 1);
    again.cut();
    there.progress(4).finish({ ok: true });
    const rest = await caller().read(lastIdOf(again));
    assert.equal(await rest.untilEnded(), 'end');
    assert.deepEqual([...progressOf(call), ...progressOf(again), ...progressOf(rest)], [1, 2, 3, 4]);
    assert.deepEqual(messagesOf(rest).at(-1), { jsonrpc: '2.0', id: 'a', result: { ok: true } });
    assert.equal((await caller().get(lastIdOf(rest))).status, 405, 'there is no more');
  });

  it('12.12 an answer that was whole at once can be read again from its beginning', async () => {
    const called = caller().call(7);
    (await upstream.nextCall()).stream().progress(1).finish({ ok: true });
    const call = await called;
    await call.untilEnded();
    const [first = ''] = call.idsWithoutEvent.concat(call.events.map(({ id }) => id));
    const again = await caller().read(first);
    await again.untilEnded();
    assert.deepEqual(messagesOf(again).at(-1)?.result, { ok: true });
  });

  it('12.12 ids are of one server behind, and none else', async () => {
    const [call, there] = await begun(caller().call(1));
    there.progress(2);
    const elsewhere = await caller().get(lastIdOf(call), '/other');
    assert.match(elsewhere.text, /-32017/);
    assert.doesNotMatch(elsewhere.text, /progress/);
    assert.equal((await caller().get(`${lastIdOf(call)}x.y`)).status, 400);
    there.finish();
    await call.untilEnded();
  });

  it('12.12 the same request with the same Idempotency-Key reads the same answer; another one is 422', async () => {
    const key = { 'Idempotency-Key': 'one call' };
    const before = upstream.seen.length;
    const [call, there] = await begun(caller().call(1, key));
    const repeat = await caller().call(1, key);
    assert.equal(await call.untilEnded(), 'end', 'the newest connection reads');
    assert.equal((await caller().post(2, key)).status, 422);
    there.progress(2).finish({ ok: true });
    assert.equal(await repeat.untilEnded(), 'end');
    assert.deepEqual(progressOf(repeat), [1, 2]);
    assert.deepEqual(messagesOf(repeat).at(-1)?.result, { ok: true });
    assert.equal(upstream.seen.length, before + 1);
  });

  it('12.12 with a key a call outlives a client that hangs up before the answer, and JSON is kept as well', async () => {
    const key = { 'Idempotency-Key': 'another call' };
    const connection = await HttpConnection.open(broker.port);
    connection.send(encodeRequest(post(1, key)));
    const there = await upstream.nextCall();
    connection.destroy();
    const repeats = [caller().post(1, key), caller().post(1, key)];
    there.json({ ok: true });
    repeats.push(caller().post(1, key));
    for (const repeat of repeats) assert.deepEqual((await repeat).json().result, { ok: true });
  });

  it('12.12 without a key a client that hangs up before the answer has nothing to come back with, and cancels', async () => {
    const connection = await HttpConnection.open(broker.port);
    connection.send(encodeRequest(post(1, {})));
    const there = await upstream.nextCall();
    connection.destroy();
    await there.closed;
  });
});

describe('12.12 durable responses for a moment', () => {
  const broker = useBroker('--mcp-response-grace-ms', '1', ...DURABLE);

  it('12.12 whom nobody comes back to is cancelled, and who comes too late is told so in a way that ends the call', async () => {
    const caller = new Caller(broker.port);
    const [call, there] = await begun(caller.call('late'));
    call.cut();
    await there.closed;
    const answer = await caller.read(lastIdOf(call));
    assert.equal(await answer.untilEnded(), 'end');
    const [message] = messagesOf(answer);
    assert.deepEqual([message?.id, message?.error?.code], ['late', -32017]);
    assert.equal((await caller.get(lastIdOf(answer))).status, 405);
  });
});

describe('12.12 durable responses, one at a time', () => {
  const broker = useBroker('--mcp-response-grace-ms', '1m', '--mcp-sessions-max', '1', ...DURABLE);

  it('12.12 one more than may be is refused while the first is waited for, and takes its place once that is answered', async () => {
    const caller = new Caller(broker.port);
    const [call, there] = await begun(caller.call(1));
    const refused = await caller.post(2);
    assert.equal(refused.status, 503);
    assert.equal(refused.json<{ error: { code: number } }>().error.code, -32019);
    assert.equal(total(await scrape(broker.port), 'gapless_mcp_calls_refused_total'), 1);
    there.finish();
    await call.untilEnded();
    upstream.intercept = (exchange) => {
      exchange.json({ ok: true });
      return true;
    };
    await eventually('room for another call', async () => (await caller.post(3)).status === 200);
    upstream.intercept = () => false;
    const gone = await caller.read(lastIdOf(call));
    await gone.untilEnded();
    assert.equal(messagesOf(gone)[0]?.error?.code, -32017);
  });
});

const ENDS: Readonly<Record<string, (broker: BrokerProcess) => Promise<unknown>>> = {
  SIGTERM: (broker) => broker.stop(),
  SIGKILL: (broker) => broker.kill(),
};

describe('12.12 durable responses, and a front that starts again', () => {
  for (const [signal, end] of Object.entries(ENDS)) {
    it(`12.12 ${signal}: with a log an answer is read on after its ids, and who was not answered is told so`, async (context) => {
      const directory = makeDirectory();
      context.after(() => removeDirectory(directory));
      const grace = ['--mcp-response-grace-ms', '1m', '--drain-ms', '0', ...DURABLE];
      const before = await BrokerProcess.start('--data-dir', directory, ...grace);
      const caller = new Caller(before.port);
      const key = { 'Idempotency-Key': 'one call' };
      const [answered, there] = await begun(caller.call('answered', key));
      const [open] = await begun(caller.call('open'));
      open.cut();
      there.progress(2).finish({ ok: true });
      assert.equal(await answered.untilEnded(), 'end');
      await end(before);
      const after = await before.startAgain();
      context.after(() => after.stop());

      for (const { id } of answered.events.filter(({ data }) => data.includes('"progress":1'))) {
        const rest = await caller.read(id);
        assert.equal(await rest.untilEnded(), 'end');
        assert.deepEqual(progressOf(rest), [2]);
        assert.deepEqual(messagesOf(rest).at(-1)?.result, { ok: true });
      }
      assert.equal((await caller.get(lastIdOf(answered))).status, 405);
      const told = await caller.read(lastIdOf(open));
      assert.equal(await told.untilEnded(), 'end');
      const { id, error } = messagesOf(told).at(-1) ?? {};
      assert.equal(id, 'open');
      assert.ok([-32016, -32017].includes(error?.code ?? 0), error?.message);
      // Of keys nothing is known any more.
      const repeat = caller.call('answered', key);
      (await upstream.nextCall()).stream().finish({ again: true });
      await (await repeat).untilEnded();
      assert.deepEqual(messagesOf(await repeat).at(-1)?.result, { again: true });
      assert.deepEqual(after.errors, []);
    });
  }

  it('12.12 without a log whoever comes back is told, by ids that nobody can read any more as well', async (context) => {
    const before = await BrokerProcess.start('--mcp-response-grace-ms', '1m', ...DURABLE);
    const caller = new Caller(before.port);
    const [call] = await begun(caller.call('mine'));
    await before.kill();
    const after = await before.startAgain();
    context.after(() => after.stop());
    const told = await caller.read(lastIdOf(call));
    assert.equal(await told.untilEnded(), 'end');
    assert.deepEqual([messagesOf(told)[0]?.id, messagesOf(told)[0]?.error?.code], ['mine', -32017]);
    assert.equal((await caller.get(lastIdOf(told))).status, 405);
    const madeUp = Buffer.from(JSON.stringify(['k', 'e', '1,"x":2'])).toString('base64url');
    assert.equal((await caller.get(`${madeUp}.${'A'.repeat(22)}.1`)).status, 400);
  });
});

describe('12.12 for clients of the SDK', () => {
  it('12.12 a call of version 2 ends with an error when the front was killed and starts again', async (context) => {
    const server = await startStatelessServer(context);
    const flags = ['--mcp-response-grace-ms', '1m', '--retry-ms', '2000'];
    const before = await BrokerProcess.start('--mcp', `/mcp=${server.url}`, ...flags);
    const client = await connectStatelessClient(context, `http://127.0.0.1:${before.port}/mcp`);
    const progress: unknown[] = [];
    const held = { name: 'count', arguments: { label: 'held', steps: 6, holdAfter: 2 } };
    const called = client.callTool(held, { onprogress: (step) => progress.push(step) });
    called.catch(() => undefined);
    await eventually('the call to be held', () => progress.length === 2);
    await before.kill();
    const after = await before.startAgain();
    context.after(() => after.stop());
    await assert.rejects(called, { code: -32017 });
  });

  it('12.12 a call of version 2 is whole however often its connection breaks', async (context) => {
    const server = await startStatelessServer(context);
    const { broker } = await startFront(context, { '/mcp': server.url }, '--mcp-response-grace-ms', '1m');
    const proxy = await TcpProxy.start(broker.port);
    context.after(() => proxy.stop());
    const client = await connectStatelessClient(context, `http://127.0.0.1:${proxy.port}/mcp`);
    const [label, steps] = ['cut', 6];
    const progress: (string | undefined)[] = [];
    const onprogress = ({ message }: { message?: string | undefined }): void => {
      progress.push(message);
      // Not after the last, with which the answer may be there.
      if (progress.length === 2) {
        proxy.cutAll();
        server.gates.open(label);
      }
    };
    const call = { name: 'count', arguments: { label, steps, holdAfter: 2 } };
    const { content } = await client.callTool(call, { onprogress });
    assert.deepEqual(content, [{ type: 'text', text: resultText(label, steps) }]);
    assert.deepEqual(
      progress,
      range(1, steps).map((n) => progressText(label, n)),
    );
  });

  it('12.9 a subscription of version 2 ends gracefully when the broker goes down', async (context) => {
    const server = await startStatelessServer(context);
    const front = await launchFront({ '/mcp': server.url });
    const client = await connectStatelessClient(context, front.urlOf('/mcp'));
    const { closed } = await client.listen({ toolsListChanged: true });
    await front.stop();
    assert.equal(await closed, 'graceful');
  });
});

describe('12.9 a front that goes down', () => {
  it('12.9 tells a subscription that it ends, and a call that it was not answered', async () => {
    const broker = await BrokerProcess.start(...DURABLE);
    const caller = new Caller(broker.port);
    const [call] = await begun(caller.call('call'));
    const [listening] = await begun(caller.call('listen', {}, 'subscriptions/listen'));
    broker.signal('SIGTERM');
    for (const stream of [call, listening]) assert.equal(await stream.untilEnded(), 'end');
    const failed = messagesOf(call).at(-1);
    assert.deepEqual(
      [failed?.id, failed?.error?.code, failed?.error?.data],
      ['call', -32018, { reason: 'draining' }],
    );
    assert.deepEqual(messagesOf(listening).at(-1), {
      jsonrpc: '2.0',
      id: 'listen',
      result: { resultType: 'complete', _meta: { 'io.modelcontextprotocol/subscriptionId': 'listen' } },
    });
    assert.deepEqual(await broker.untilExit(), { code: 0, signal: null });
  });
});
