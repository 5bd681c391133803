import assert from 'node:assert/strict';
import { after, describe, it } from 'node:test';
import { useBroker } from '../support/broker-process.js';
import { McpClient, messagesOf } from '../support/mcp-client.js';
import { McpUpstream } from '../support/mcp-upstream.js';
import { failureOf } from './failure-of.js';

const upstream = await McpUpstream.start();
after(() => upstream.stop());

describe('12.6 a server that has forgotten a session', () => {
  const broker = useBroker('--mcp', `/mcp=${upstream.url}`);

  const FORGOTTEN: Readonly<Record<string, [status: number, error: { code: number; message: string }]>> = {
    404: [404, { code: -32001, message: 'Session not found' }],
    'a 400 of the examples of the SDK': [
      400,
      { code: -32000, message: 'Bad Request: No valid session ID provided' },
    ],
    'a 400 of a transport that nobody has begun': [
      400,
      { code: -32000, message: 'Bad Request: Server not initialized' },
    ],
  };

  for (const [how, [status, error]] of Object.entries(FORGOTTEN)) {
    it(`12.6 (4) a server that has forgotten the session, and says so by ${how}, is given a new one`, async () => {
      const client = await McpClient.open(broker.port);
      upstream.sessionId = 'the-next-one';
      const seen = upstream.seen.length;
      upstream.intercept = (exchange) => {
        if (exchange.header('mcp-session-id') !== 'upstream-session') return false;
        exchange.answer(status, { jsonrpc: '2.0', id: null, error });
        return true;
      };
      const calls = await Promise.all([client.call('a'), client.call('b'), client.call('c')]);
      for (let n = 0; n < 3; n++) {
        const there = await upstream.nextCall();
        assert.equal(there.header('mcp-session-id'), 'the-next-one');
        there.json({ n });
      }
      await Promise.all(calls.map((call) => call.untilEnded()));
      upstream.intercept = () => false;
      upstream.sessionId = 'upstream-session';
      assert.ok(calls.every((call) => messagesOf(call)[0]?.result !== undefined));
      const begun = upstream.seen.slice(seen).filter((what) => what === 'POST initialize');
      assert.equal(begun.length, 1, 'once for all three');
      assert.equal((await client.notify('ping')).status, 202);
    });
  }

  it('12.6 a 400 that answers the call, or does not speak of the session, is no reason to begin a new one', async () => {
    const client = await McpClient.open(broker.port);
    const seen = upstream.seen.length;
    const error = { code: -32000, message: 'this session is not for you' };
    for (const body of [{ jsonrpc: '2.0', id: 'mine', error }, 'no such tool']) {
      const call = await client.call('mine');
      (await upstream.nextCall()).answer(400, body);
      await call.untilEnded();
      assert.notEqual(messagesOf(call)[0]?.error, undefined);
    }
    assert.ok(!upstream.seen.slice(seen).includes('POST initialize'));
  });

  it('12.6 (4) a server that has forgotten the session and takes no other: the call ends', async () => {
    const client = await McpClient.open(broker.port);
    upstream.intercept = (exchange) => {
      exchange.answer(404);
      return true;
    };
    const call = await client.call('a');
    assert.deepEqual(await failureOf(call), { id: 'a', code: -32016, reason: 'session_lost', status: 404 });
    upstream.intercept = () => false;
    const next = await client.call('b');
    (await upstream.nextCall()).json({});
    await next.untilEnded();
  });
});
