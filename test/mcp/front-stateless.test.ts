import assert from 'node:assert/strict';
import { after, it } from 'node:test';
import { describeOnEdges } from '../support/broker-process.js';
import { encodeRequest, HttpConnection, type HttpRequest, request } from '../support/http.js';
import { messagesOf, progressOf, untilMessages } from '../support/mcp-client.js';
import { McpUpstream } from '../support/mcp-upstream.js';
import { SseSubscription } from '../support/sse-client.js';

const upstream = await McpUpstream.start();
after(() => upstream.stop());

function callRequest(id: number, headers: Record<string, string> = {}): HttpRequest {
  return {
    path: '/mcp',
    headers: {
      Accept: 'application/json, text/event-stream',
      'Content-Type': 'application/json',
      'MCP-Protocol-Version': '2026-07-28',
      'Mcp-Method': 'tools/call',
      'Mcp-Name': 'count',
      'Mcp-Param-Region': 'eu',
      ...headers,
    },
    body: JSON.stringify({ jsonrpc: '2.0', id, method: 'tools/call', params: { name: 'count' } }),
  };
}

describeOnEdges('12.8 requests of 2026-07-28', ['--mcp', `/mcp=${upstream.url}`], (broker) => {
  const call = (id: number) =>
    SseSubscription.open(broker.port, 'a call', { request: callRequest(id), keepText: true });

  it('12.8 a request is passed on with its headers, and needs no session', async () => {
    const answered = request(broker.port, callRequest(1));
    const there = await upstream.nextCall();
    assert.equal(there.header('mcp-protocol-version'), '2026-07-28');
    assert.equal(there.header('mcp-method'), 'tools/call');
    assert.equal(there.header('mcp-name'), 'count');
    assert.equal(there.header('mcp-param-region'), 'eu');
    assert.equal(there.header('mcp-session-id'), '');
    there.json({ ok: true });
    const answer = await answered;
    assert.equal(answer.status, 200);
    assert.equal(answer.header('content-type'), 'application/json');
    assert.equal(answer.header('mcp-session-id'), undefined);
    assert.deepEqual(answer.json().result, { ok: true });
  });

  it('12.8 the status of the server is the status of the answer, with what it says', async () => {
    for (const [status, code] of [
      [404, -32601],
      [400, -32020],
      [422, -32602],
    ] as const) {
      const answered = request(broker.port, callRequest(1));
      const there = await upstream.nextCall();
      there.answer(status, { jsonrpc: '2.0', id: 1, error: { code, message: 'no' } });
      const answer = await answered;
      assert.equal(answer.status, status);
      assert.equal(answer.json<{ error: { code: number } }>().error.code, code);
    }
  });

  it('12.8 an event stream comes without ids, whatever the server gives, and ends after the answer', async () => {
    const called = call(1);
    const there = await upstream.nextCall();
    there.stream().raw(': alive\n\n').progress(1, 'u1').progress(2);
    const stream = await called;
    await untilMessages(stream, 2);
    there.finish({ ok: true });
    assert.equal(await stream.untilEnded(), 'end');
    assert.deepEqual(progressOf(stream), [1, 2]);
    assert.deepEqual(messagesOf(stream).at(-1)?.result, { ok: true });
    assert.doesNotMatch(stream.text, /^(id|retry):/m);
    assert.equal(stream.header('mcp-session-id'), undefined);
  });

  it('12.8 a client that hangs up cancels, before the answer has begun and in the midst of it', async () => {
    const called = call(1);
    const there = await upstream.nextCall();
    there.stream().progress(1);
    const stream = await called;
    await untilMessages(stream, 1);
    stream.cut();
    await there.closed;

    const connection = await HttpConnection.open(broker.port);
    connection.send(encodeRequest(callRequest(2)));
    const waiting = await upstream.nextCall();
    connection.destroy();
    await waiting.closed;
  });

  it('12.8 a server that hangs up: the call ends with an error', async () => {
    const called = call(5);
    const there = await upstream.nextCall();
    there.stream().progress(1);
    const stream = await called;
    await untilMessages(stream, 1);
    there.reset();
    await stream.untilEnded();
    const last = messagesOf(stream).at(-1);
    assert.deepEqual([last?.id, last?.error?.code, last?.error?.data?.reason], [5, -32016, 'broken']);
  });

  it('12.8 GET and DELETE are not there', async () => {
    for (const method of ['GET', 'DELETE']) {
      const headers = { Accept: 'text/event-stream', 'MCP-Protocol-Version': '2026-07-28' };
      const answer = await request(broker.port, { method, path: '/mcp', headers });
      assert.equal(answer.status, 405);
      assert.equal(answer.header('allow'), 'POST');
    }
  });
});
