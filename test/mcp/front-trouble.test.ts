import assert from 'node:assert/strict';
import { after, describe, it } from 'node:test';
import { BrokerProcess, type SuiteBroker, useBroker } from '../support/broker-process.js';
import { openCrowd } from '../support/crowd.js';
import { eventually } from '../support/deadline.js';
import { request } from '../support/http.js';
import {
  initializeRequest,
  McpClient,
  messagesOf,
  progressOf,
  untilMessages,
} from '../support/mcp-client.js';
import { McpUpstream, type UpstreamExchange } from '../support/mcp-upstream.js';
import { scrape, total } from '../support/prometheus.js';
import { failureOf } from './failure-of.js';

const upstream = await McpUpstream.start();
after(() => upstream.stop());

interface Trouble {
  reason: string;
  status?: number;
  cause: (there: UpstreamExchange) => void;
}

/** Whatever the trouble, the call ends with its reason, and the session lives on. */
function itEndsCalls(broker: SuiteBroker, troubles: Readonly<Record<string, Trouble>>): void {
  for (const [what, { reason, status, cause }] of Object.entries(troubles)) {
    it(`12.6 (20) ${what}: the call ends with the reason, and the session lives on`, async () => {
      const client = await McpClient.open(broker.port);
      const call = await client.call('mine');
      cause(await upstream.nextCall());
      assert.deepEqual(await failureOf(call), { id: 'mine', code: -32016, reason, status });
      const next = await client.call(2);
      (await upstream.nextCall()).json({ ok: true });
      await next.untilEnded();
      assert.deepEqual(messagesOf(next)[0]?.result, { ok: true });
    });
  }
}

describe('12.6 a server that falls silent', () => {
  itEndsCalls(useBroker('--mcp', `/mcp=${upstream.url}`, '--mcp-silence-ms', '1s'), {
    'says nothing': { reason: 'silent', cause: () => undefined },
    'falls silent in its stream': { reason: 'silent', cause: (there) => void there.stream().progress(1) },
  });
});

describe('12.6 a server in trouble', () => {
  const broker = useBroker('--mcp', `/mcp=${upstream.url}`, '--body-bytes-max', '64KiB');

  itEndsCalls(broker, {
    'hangs up before it answers': { reason: 'unreachable', cause: (there) => there.reset() },
    'hangs up in the midst of its stream': {
      reason: 'broken',
      cause: (there) => {
        there.stream().progress(1);
        setImmediate(() => there.reset());
      },
    },
    'ends its stream without an answer': {
      reason: 'broken',
      cause: (there) => void there.stream().response.end(),
    },
    'hangs up in the midst of its JSON': {
      reason: 'broken',
      cause: (there) => {
        there.response.writeHead(200, { 'Content-Type': 'application/json', 'Content-Length': '100' });
        there.raw('{"jsonrpc":');
        setImmediate(() => there.reset());
      },
    },
    'answers no JSON': {
      reason: 'rubbish',
      cause: (there) => there.answer(200, 'hello', { 'Content-Type': 'text/html' }),
    },
    'says what is no message': {
      reason: 'rubbish',
      cause: (there) => void there.stream().raw('data: {"a":1}\n\n'),
    },
    'answers another call': {
      reason: 'rubbish',
      cause: (there) => there.answer(200, { jsonrpc: '2.0', id: 'another', result: {} }),
    },
    'accepts a call like a notification': { reason: 'rubbish', cause: (there) => there.answer(202) },
    'says too much': {
      reason: 'message_too_large',
      cause: (there) => there.json({ much: 'x'.repeat(70_000) }),
    },
    'says too much in its stream': {
      reason: 'message_too_large',
      cause: (there) => there.stream().finish({ much: 'x'.repeat(70_000) }),
    },
    'does not know the caller': { reason: 'refused', status: 401, cause: (there) => there.answer(401, 'no') },
    fails: { reason: 'refused', status: 500, cause: (there) => there.answer(500, 'oops') },
    'sends the caller elsewhere': {
      reason: 'refused',
      status: 307,
      cause: (there) => there.answer(307, '', { Location: 'http://127.0.0.1:1/' }),
    },
  });

  it('12.6 what the server says with an HTTP error is the answer, where it is one', async () => {
    const client = await McpClient.open(broker.port);
    const call = await client.call('mine');
    const there = await upstream.nextCall();
    there.answer(400, { jsonrpc: '2.0', id: 'mine', error: { code: -32602, message: 'no such tool' } });
    await call.untilEnded();
    assert.deepEqual(messagesOf(call)[0]?.error, { code: -32602, message: 'no such tool' });
  });

  it('12.6 a server that begins a session with nothing at all, and headers that nobody can send, end nothing', async () => {
    upstream.intercept = (exchange) => {
      exchange.answer(200, { jsonrpc: '2.0', id: 'init', result: null });
      return true;
    };
    const answer = await request(broker.port, initializeRequest({}));
    upstream.intercept = () => false;
    assert.equal(answer.status, 200);
    const client = await McpClient.open(broker.port, { headers: { 'X-Odd': 'caf\u00e9 \u4e2d' } });
    const call = await client.call(1);
    const there = await upstream.nextCall();
    there.json({});
    await call.untilEnded();
  });

  it('12.6 what came before the trouble is there', async () => {
    const client = await McpClient.open(broker.port);
    const call = await client.call('mine');
    const there = (await upstream.nextCall()).stream().progress(1).progress(2);
    await untilMessages(call, 2);
    there.reset();
    await failureOf(call);
    assert.deepEqual(progressOf(call), [1, 2]);
  });

  it('12.6 messages after the answer, and a server that never ends its stream, change nothing', async () => {
    const client = await McpClient.open(broker.port);
    const call = await client.call(1);
    const there = (await upstream.nextCall()).stream();
    there
      .say({ jsonrpc: '2.0', id: 1, result: { n: 1 } })
      .say({ jsonrpc: '2.0', id: 1, result: { n: 2 } })
      .progress(9);
    assert.equal(await call.untilEnded(), 'end');
    assert.deepEqual(messagesOf(call), [{ jsonrpc: '2.0', id: 1, result: { n: 1 } }]);
    await there.closed;
  });

  it('12.6 a stream with ids that the server lets go of is taken up again, where it was', async () => {
    upstream.listens = true;
    const client = await McpClient.open(broker.port);
    const call = await client.call(1);
    const there = (await upstream.nextCall()).stream();
    there.raw('id: u0\nretry: 10\ndata: \n\n').progress(1, 'u1');
    there.response.end();
    const second = await upstream.nextListener();
    assert.equal(second.header('last-event-id'), 'u1');
    second.stream().raw('id: u2\nretry: 10\ndata: \n\n');
    setImmediate(() => second.reset());
    const third = await upstream.nextListener();
    assert.equal(third.header('last-event-id'), 'u2');
    third
      .stream()
      .progress(2, 'u3')
      .say({ jsonrpc: '2.0', id: 1, result: { ok: true } }, 'u4')
      .response.end();
    await call.untilEnded();
    upstream.listens = false;
    assert.deepEqual(progressOf(call), [1, 2]);
    assert.deepEqual(messagesOf(call).at(-1)?.result, { ok: true });
  });

  it('12.6 a stream that gets nowhere is given up', async () => {
    upstream.intercept = (exchange) => {
      if (exchange.request.method !== 'GET') return false;
      exchange.stream().raw('retry: 1\n\n').response.end();
      return true;
    };
    const client = await McpClient.open(broker.port);
    const call = await client.call(1);
    (await upstream.nextCall()).stream().raw('id: u0\nretry: 1\ndata: \n\n').response.end();
    assert.deepEqual(await failureOf(call), { id: 1, code: -32016, reason: 'broken', status: undefined });
    upstream.intercept = () => false;
  });

  it('12.6 the end of a session ends its calls, here and at the server', async () => {
    const client = await McpClient.open(broker.port);
    const call = await client.call('mine');
    const there = await upstream.nextCall();
    there.stream().progress(1);
    await untilMessages(call, 1);
    await client.delete();
    assert.equal((await failureOf(call)).code, -32018);
    await there.closed;
    await eventually('the server to hear of it', async () => upstream.seen.includes('DELETE'));
  });
});

describe('12.6 what an operator sees', () => {
  const broker = useBroker('--mcp', `/mcp=${upstream.url}`);

  it('10 sessions, calls and failures are counted, and a failure is logged without what would let one in', async () => {
    const client = await McpClient.open(broker.port);
    const call = await client.call(1);
    (await upstream.nextCall()).answer(500, 'oops');
    await failureOf(call);
    const waiting = await client.call(2);
    const there = await upstream.nextCall();
    const taken = await client.read((await waiting.untilEvents(1))[0]?.id);
    const metrics = await scrape(broker.port);
    const value = (name: string, labels = {}) => total(metrics, `gapless_mcp_${name}`, labels);
    assert.equal(value('sessions'), 1);
    assert.equal(value('sessions_begun_total'), 1);
    assert.equal(value('calls_total'), 2);
    assert.equal(value('calls_under_way'), 1);
    assert.equal(value('messages_total'), 1);
    assert.equal(value('takeovers_total'), 1);
    assert.equal(value('calls_failed_total', { reason: 'refused' }), 1);
    assert.equal(value('calls_failed_total'), 1);
    const line = await broker.process.until('call failed');
    assert.deepEqual([line.path, line.code, line.reason, line.status], ['/mcp', -32016, 'refused', 500]);
    assert.ok(!JSON.stringify(broker.process.log).includes(client.session));
    there.json({});
    await taken.untilEnded();
  });
});

describe('10 a front that goes down', () => {
  it('10 (5) readers are sent away properly, and calls end, for their sessions end with this front; new calls are 503', async () => {
    const broker = await BrokerProcess.start('--mcp', `/mcp=${upstream.url}`, '--drain-ms', '4s');
    const [modern, old] = [
      await McpClient.open(broker.port),
      await McpClient.open(broker.port, { revision: '2025-06-18' }),
    ];
    const calls = [await modern.call(1), await old.call(1)];
    const own = [await modern.read(), await old.read()];
    for (const stream of [...calls, ...own]) {
      await stream.until('its beginning', () => stream.eventCount + stream.comments > 0);
    }
    await openCrowd(broker.port);
    broker.signal('SIGTERM');
    await eventually(
      'not ready',
      async () => (await request(broker.port, { path: '/readyz' })).status === 503,
    );
    assert.equal((await modern.post({ jsonrpc: '2.0', id: 2, method: 'ping' })).status, 503);
    for (const call of calls) {
      assert.equal(await call.untilEnded(), 'end');
      const { id, error } = messagesOf(call).at(-1) ?? {};
      assert.deepEqual([id, error?.code, error?.data], [1, -32018, { reason: 'draining' }]);
    }
    for (const stream of own) assert.equal(await stream.untilEnded(), 'end');
    assert.equal(own[0]?.retries.length, 2);
    assert.deepEqual(own[1]?.retries, [], 'older clients take it for an empty message');
    assert.deepEqual(await broker.untilExit(), { code: 0, signal: null });
    for (const _ of calls) await upstream.nextCall();
  });
});

describe('12.6 a server that is not there', () => {
  const broker = useBroker('--mcp', '/mcp=http://127.0.0.1:1/mcp');

  it('12.6 initialize is answered with 502 and an error', async () => {
    const answer = await request(broker.port, initializeRequest({}));
    assert.equal(answer.status, 502);
    const { id, error } = answer.json<{ id: string; error: { code: number; data: unknown } }>();
    assert.deepEqual([id, error.code, error.data], ['init', -32016, { reason: 'unreachable' }]);
  });
});

describe('12.1 limits', () => {
  const broker = useBroker(
    '--mcp',
    `/mcp=${upstream.url}`,
    '--mcp-sessions-max',
    '2',
    '--mcp-calls-max',
    '2',
    '--mcp-session-ttl-ms',
    '2s',
  );

  it('12.1 no more calls at a time, and no more sessions, than there may be; those that nobody uses go', async () => {
    const client = await McpClient.open(broker.port);
    const calls = [await client.call(1), await client.call(2)];
    const refused = await client.post({ jsonrpc: '2.0', id: 3, method: 'ping' });
    assert.equal(refused.status, 429);
    assert.deepEqual(refused.json<{ id: number }>().id, 3);
    const other = await McpClient.open(broker.port);
    const own = await other.read();
    // Both are in use, so that none goes meanwhile.
    assert.equal((await request(broker.port, initializeRequest({}))).status, 503);
    for (const call of calls) {
      (await upstream.nextCall()).json({});
      await call.untilEnded();
    }
    await eventually('room for another session', async () => {
      return (await request(broker.port, initializeRequest({}))).status === 200;
    });
    assert.equal((await client.notify('ping')).status, 404, 'it was the first that nobody used');
    assert.equal((await other.notify('ping')).status, 202, 'somebody reads it');
    own.cut();
  });
});
