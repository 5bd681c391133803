import assert from 'node:assert/strict';
import { after, it } from 'node:test';
import { describeOnEdges } from '../support/broker-process.js';
import { request } from '../support/http.js';
import {
  initializeRequest,
  McpClient,
  messagesOf,
  progressOf,
  untilMessages,
} from '../support/mcp-client.js';
import { McpUpstream } from '../support/mcp-upstream.js';
import { scrape, total } from '../support/prometheus.js';

const upstream = await McpUpstream.start();
after(() => upstream.stop());
const FLAGS = ['--mcp', `/mcp=${upstream.url}`];

describeOnEdges('12.2 calls', FLAGS, (broker) => {
  it('12.2 initialize begins a session, which the front names', async () => {
    const answer = await request(broker.port, initializeRequest({}));
    assert.equal(answer.status, 200);
    assert.match(answer.header('mcp-session-id') ?? '', /^[\x21-\x7e]{20,}$/);
    assert.notEqual(answer.header('mcp-session-id'), upstream.sessionId);
    assert.equal(answer.json<{ id: string }>().id, 'init');
  });

  it('12.3 (23) a call is answered by an event stream: an id first, an id on every message, then the end', async () => {
    const client = await McpClient.open(broker.port);
    const call = await client.call('a');
    (await upstream.nextCall()).json({ ok: true });
    assert.equal(await call.untilEnded(), 'end');
    assert.equal(call.header('content-type'), 'text/event-stream');
    assert.equal(call.header('mcp-session-id'), client.session);
    assert.deepEqual(
      call.events.map(({ data, carriesId, type }) => [data, carriesId, type]),
      [
        ['', true, 'message'],
        ['{"jsonrpc":"2.0","id":"a","result":{"ok":true}}', true, 'message'],
      ],
    );
    assert.equal(call.retries.length, 1);
    assert.deepEqual(call.linesWithoutColon, []);
    assert.match(call.text, /^id: \S+\nretry: \d+\ndata: \n\nid: \S+\nevent: message\ndata: /);
  });

  it('12.3 (14) the head and the first event are there before the server says a word', async () => {
    const client = await McpClient.open(broker.port);
    const call = await client.call(1);
    await call.untilEvents(1);
    const there = await upstream.nextCall();
    there.json({});
    await call.untilEnded();
  });

  it('12.3 (15) a call that broke before the server said a word has its result all the same', async () => {
    const client = await McpClient.open(broker.port);
    const call = await client.call(1);
    await call.untilEvents(1);
    call.cut();
    const there = await upstream.nextCall();
    const again = await client.read(call.lastEventId);
    there.stream().progress(1).finish({ n: 1 });
    await again.untilEnded();
    assert.deepEqual(messagesOf(again).at(-1)?.result, { n: 1 });
    assert.deepEqual(progressOf(again), [1]);
  });

  it('12.3 (22) a result that came while nobody was there is kept, and replayed as often as it is asked for', async () => {
    const client = await McpClient.open(broker.port);
    const call = await client.call(1);
    await call.untilEvents(1);
    call.cut();
    (await upstream.nextCall()).json({ late: true });
    for (let round = 0; round < 3; round++) {
      const again = await client.read(call.lastEventId);
      assert.equal(await again.untilEnded(), 'end');
      assert.deepEqual(messagesOf(again), [{ jsonrpc: '2.0', id: 1, result: { late: true } }]);
    }
  });

  it('12.3 (2) a resume replays its own stream and no other, and the tail comes under it', async () => {
    const client = await McpClient.open(broker.port);
    const a = await client.call('a');
    const atA = await upstream.nextCall();
    const b = await client.call('b');
    const atB = await upstream.nextCall();
    atA.stream().say({ jsonrpc: '2.0', method: 'of-a' });
    atB.stream().say({ jsonrpc: '2.0', method: 'of-b' });
    await Promise.all([untilMessages(a, 1), untilMessages(b, 1)]);
    a.cut();
    atB.say({ jsonrpc: '2.0', method: 'of-b' }).finish({ of: 'b' });
    atA.say({ jsonrpc: '2.0', method: 'of-a' });
    const again = await client.read(a.events[0]?.id);
    await untilMessages(again, 2);
    atA.finish({ of: 'a' });
    await Promise.all([again.untilEnded(), b.untilEnded()]);
    assert.deepEqual(
      messagesOf(again).map(({ method, result }) => method ?? result),
      ['of-a', 'of-a', { of: 'a' }],
    );
    assert.deepEqual(messagesOf(b).at(-1)?.result, { of: 'b' });
  });

  it('12.3 (3, 11, 19) each connection begins with an id of its own, from which it goes on', async () => {
    const client = await McpClient.open(broker.port);
    const call = await client.call(1);
    await call.untilEvents(1);
    const there = await upstream.nextCall();
    const ids = new Set([call.lastEventId]);
    let last = call;
    for (let round = 0; round < 5; round++) {
      last.cut();
      last = await client.read(last.lastEventId);
      await last.untilEvents(1);
      ids.add(last.lastEventId);
    }
    assert.equal(ids.size, 6);
    there.json({ ok: true });
    await last.untilEnded();
    assert.deepEqual(messagesOf(last), [{ jsonrpc: '2.0', id: 1, result: { ok: true } }]);
  });

  it('12.3 (16) nothing is lost or doubled between replay and live, however often a call breaks', async () => {
    const client = await McpClient.open(broker.port);
    const call = await client.call(1);
    await call.untilEvents(1);
    const there = await upstream.nextCall();
    there.stream();
    const total = 2000;
    const seen: unknown[] = [];
    let current = call;
    for (let sent = 0; sent < total; ) {
      for (let burst = 0; burst < 100; burst++) there.progress(sent++);
      const enough = Math.min(seen.length + 40, total - 1) - seen.length;
      await current.until('some more', () => progressOf(current).length >= enough);
      current.cut();
      seen.push(...progressOf(current));
      current = await client.read(current.lastEventId);
    }
    there.finish({ done: true });
    await current.untilEnded();
    seen.push(...progressOf(current));
    assert.deepEqual(
      seen,
      Array.from({ length: total }, (_, index) => index),
    );
    assert.deepEqual(messagesOf(current).at(-1)?.result, { done: true });
  });

  it('12.3 (18) the newest reader takes over from one that still looks alive, without a 409', async () => {
    const client = await McpClient.open(broker.port);
    const call = await client.call(1);
    await call.untilEvents(1);
    const there = await upstream.nextCall();
    const again = await client.read(call.lastEventId);
    assert.equal(await call.untilEnded(), 'end');
    there.json({ ok: true });
    await again.untilEnded();
    assert.equal(messagesOf(call).length, 0);
    assert.deepEqual(messagesOf(again).at(-1)?.result, { ok: true });
  });

  it('12.4 a client that has all of an answered call is told that nothing more comes', async () => {
    const client = await McpClient.open(broker.port);
    const call = await client.call(1);
    (await upstream.nextCall()).json({});
    await call.untilEnded();
    const answer = await client.get(call.lastEventId);
    assert.equal(answer.status, 405);
  });

  it('12.2 a client before 2025-11-25 gets ids on messages alone: no empty data, no retry', async () => {
    const client = await McpClient.open(broker.port, { revision: '2025-06-18' });
    const call = await client.call(1);
    await call.until('a comment', () => call.comments > 0);
    const there = await upstream.nextCall();
    there.stream().progress(1);
    await untilMessages(call, 1);
    call.cut();
    there.progress(2).finish({});
    const again = await client.read(call.lastEventId);
    await again.untilEnded();
    assert.deepEqual(progressOf(again), [2]);
    for (const stream of [call, again]) {
      assert.deepEqual(stream.retries, []);
      assert.ok(stream.events.every(({ data, carriesId }) => data !== '' && carriesId));
      assert.deepEqual(stream.idsWithoutEvent, []);
    }
  });

  it('12.2 a batch of 2025-03-26 is answered on one stream, which ends after its last answer', async () => {
    const client = await McpClient.open(broker.port, { revision: '2025-03-26' });
    const batch = ['x', 'y'].map((id) => ({ jsonrpc: '2.0', id, method: 'tools/call' }));
    const posted = client.post(batch);
    const there = await upstream.nextCall();
    there.answer(
      200,
      ['y', 'x'].map((id) => ({ jsonrpc: '2.0', id, result: { of: id } })),
    );
    const answer = await posted;
    assert.equal(answer.status, 200);
    const messages = [...answer.text.matchAll(/^data: (.+)$/gm)].map(([, data]) =>
      JSON.parse(data as string),
    );
    assert.deepEqual(
      messages.map(({ result }) => result.of),
      ['y', 'x'],
    );
  });

  it('12.2 a burst in one millisecond keeps its order, on the wire and in its ids', async () => {
    const client = await McpClient.open(broker.port);
    const call = await client.call(1);
    const there = await upstream.nextCall();
    const frames = Array.from(
      { length: 200 },
      (_, n) => `data: {"jsonrpc":"2.0","method":"notifications/progress","params":{"progress":${n}}}\n\n`,
    );
    there.stream().raw(frames.join(''));
    there.finish({});
    await call.untilEnded();
    assert.deepEqual(
      progressOf(call),
      Array.from({ length: 200 }, (_, n) => n),
    );
    const seqs = call.events.map(({ id }) => Number(id.split('.')[2]));
    assert.deepEqual(
      seqs,
      Array.from({ length: 202 }, (_, n) => n),
    );
  });

  it('12.2 a byte order mark before what the server says is no part of it', async () => {
    const client = await McpClient.open(broker.port);
    const text = '\uFEFF{"jsonrpc":"2.0","id":1,"result":{"ok":true}}';
    for (const [type, body] of [
      ['application/json', text],
      ['text/event-stream', `\uFEFFdata: ${text.slice(1)}\n\n`],
    ] as const) {
      const call = await client.call(1);
      (await upstream.nextCall()).response.writeHead(200, { 'Content-Type': type }).end(body);
      await call.untilEnded();
      assert.deepEqual(messagesOf(call).at(-1)?.result, { ok: true });
    }
  });

  it('12.5 a call that was cancelled is let go of, although the server keeps it open and says nothing', async () => {
    const underWay = async () => total(await scrape(broker.port), 'gapless_mcp_calls_under_way');
    const before = await underWay();
    const client = await McpClient.open(broker.port, { revision: '2025-03-26' });
    const streaming = await client.call('streaming');
    const [there, elsewhere] = [(await upstream.nextCall()).stream().progress(1), upstream.nextCall()];
    const silent = await client.call('silent');
    const cancelled = (requestId: string) => ({
      jsonrpc: '2.0',
      method: 'notifications/cancelled',
      params: { requestId },
    });
    assert.equal((await client.post(cancelled('streaming'))).status, 202);
    // Beside a call, as that revision may have it.
    const ping = client.post([cancelled('silent'), { jsonrpc: '2.0', id: 'ping', method: 'ping' }]);
    const batch = await upstream.nextCall();
    batch.answer(200, [{ jsonrpc: '2.0', id: 'ping', result: {} }]);
    assert.equal((await ping).status, 200);
    await Promise.all([there.closed, (await elsewhere).closed]);
    for (const call of [streaming, silent]) assert.equal(await call.untilEnded(), 'end');
    assert.deepEqual(
      messagesOf(streaming).map(({ method }) => method),
      ['notifications/progress'],
    );
    assert.deepEqual(messagesOf(silent), []);
    assert.equal(await underWay(), before);
  });

  it('12.5 a disconnect is no cancellation; a cancellation is passed on, and no answer is made up for it', async () => {
    const client = await McpClient.open(broker.port);
    const call = await client.call(7);
    await call.untilEvents(1);
    const there = await upstream.nextCall();
    there.stream().progress(1);
    await untilMessages(call, 1);
    call.cut();
    const again = await client.read(call.lastEventId);
    const cancelled = await client.notify('notifications/cancelled', { requestId: 7 });
    assert.equal(cancelled.status, 202);
    assert.equal(upstream.seen.at(-1), 'POST notifications/cancelled');
    there.response.end();
    assert.equal(await again.untilEnded(), 'end');
    assert.deepEqual(messagesOf(again), []);
  });

  it('12.5 an answer to a request of the server is passed on once, however often a replay has the client give it', async () => {
    const client = await McpClient.open(broker.port);
    const passed: unknown[] = [];
    upstream.intercept = ({ message }) => {
      if (message.method === undefined && message.id === 's1') passed.push(message.result);
      return false;
    };
    const answer = { jsonrpc: '2.0', id: 's1', result: { picked: 1 } };
    for (let round = 0; round < 3; round++) assert.equal((await client.post(answer)).status, 202);
    upstream.intercept = () => false;
    assert.deepEqual(passed, [{ picked: 1 }]);
  });
});
