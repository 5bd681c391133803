import assert from 'node:assert/strict';
import { after, describe, it } from 'node:test';
import { BrokerProcess, describeOnEdges, useBroker } from '../support/broker-process.js';
import { openCrowd } from '../support/crowd.js';
import { eventually } from '../support/deadline.js';
import { makeDirectory, removeDirectory } from '../support/durable-broker.js';
import { request } from '../support/http.js';
import { McpClient } from '../support/mcp-client.js';
import { McpSseClient, sseMessagesOf, untilEndpoint, untilMessage } from '../support/mcp-sse-client.js';
import { McpUpstream } from '../support/mcp-upstream.js';
import { scrape, total } from '../support/prometheus.js';
import type { SseSubscription } from '../support/sse-client.js';

const upstream = await McpUpstream.start();
after(() => upstream.stop());
const FLAGS = ['--mcp', `/mcp=${upstream.url}`];

const progressOf = (stream: SseSubscription) =>
  sseMessagesOf(stream)
    .filter(({ method }) => method === 'notifications/progress')
    .map(({ params }) => params?.progress);
const answers = (id: unknown) => (message: { id?: unknown; method?: unknown }) =>
  message.id === id && message.method === undefined;

describeOnEdges('12.10 HTTP+SSE', FLAGS, (broker) => {
  it('12.10 a GET without a session begins one: the endpoint first, then all that is answered there', async () => {
    const client = await McpSseClient.open(broker.port);
    assert.match(client.first.text, /^id: \S+\nretry: \d+\nevent: endpoint\ndata: \/mcp\?sessionId=\S+\n\n/);
    assert.equal(client.first.header('mcp-session-id'), undefined);
    await client.call('a');
    await client.call('b');
    const [atA, atB] = [await upstream.nextCall(), await upstream.nextCall()];
    atB.json({ of: 'b' });
    await untilMessage(client.first, answers('b'));
    atA.stream().progress(1).finish({ of: 'a' });
    await untilMessage(client.first, answers('a'));
    assert.deepEqual(
      sseMessagesOf(client.first).map(({ id, method, result }) => method ?? [id, result?.of]),
      [['init', undefined], ['b', 'b'], 'notifications/progress', ['a', 'a']],
    );
    assert.deepEqual(client.first.linesWithoutColon, []);
    client.first.cut();
  });

  it('12.10 what belongs to no call comes on it as well, and the server’s questions are answered at the endpoint', async () => {
    upstream.listens = true;
    const client = await McpSseClient.open(broker.port);
    const there = (await upstream.nextListener()).stream();
    there.say({ jsonrpc: '2.0', id: 's1', method: 'ping' });
    await untilMessage(client.first, ({ method }) => method === 'ping');
    const passed: unknown[] = [];
    upstream.intercept = ({ message }) => {
      if (message.id === 's1') passed.push(message.result);
      return false;
    };
    for (let round = 0; round < 3; round++) {
      assert.equal((await client.post({ jsonrpc: '2.0', id: 's1', result: {} })).status, 202);
    }
    upstream.intercept = () => false;
    upstream.listens = false;
    assert.deepEqual(passed, [{}], 'once');
    client.first.cut();
  });

  it('12.10 whoever comes back with an id gets what came meanwhile, once and in order', async () => {
    const client = await McpSseClient.open(broker.port);
    await client.call(1);
    const there = (await upstream.nextCall()).stream();
    const seen: unknown[] = [];
    let reader = client.first;
    for (let round = 0; round < 5; round++) {
      there.progress(3 * round);
      const known = progressOf(reader).length;
      await reader.until('progress', () => progressOf(reader).length > known || known > 0);
      reader.cut();
      there.progress(3 * round + 1).progress(3 * round + 2);
      seen.push(...progressOf(reader));
      reader = await client.read(reader.lastEventId);
      await reader.until('the rest', () => seen.length + progressOf(reader).length === 3 * round + 3);
    }
    there.finish({ done: true });
    await untilMessage(reader, answers(1));
    seen.push(...progressOf(reader));
    assert.deepEqual(
      seen,
      Array.from({ length: 15 }, (_, n) => n),
    );
    assert.equal(reader.events.filter(({ type }) => type === 'endpoint').length, 0, 'it is still the same');
    reader.cut();
  });

  it('12.10 whoever comes back without an id is asked who it is, its calls end, and the session goes on', async () => {
    const client = await McpSseClient.open(broker.port);
    await client.call('waits');
    const there = (await upstream.nextCall()).stream();
    await client.call('answered');
    (await upstream.nextCall()).json({});
    await untilMessage(client.first, answers('answered'));
    client.first.cut();
    there.progress(1);
    const again = await client.readAnew();
    const ping = await untilMessage(again, ({ method }) => method === 'ping');
    assert.equal((await client.post({ jsonrpc: '2.0', id: ping.id, result: {} })).status, 202);
    assert.equal(await untilEndpoint(again), client.endpoint);
    const failed = await untilMessage(again, answers('waits'));
    assert.equal(failed.error?.code, -32017);
    assert.equal(failed.error?.data?.reason, 'history_gone');
    await untilMessage(again, ({ method }) => method === 'notifications/tools/list_changed');
    there.finish({ late: true });
    await client.call('next');
    (await upstream.nextCall()).json({ ok: true });
    await untilMessage(again, answers('next'));
    assert.equal(sseMessagesOf(again).filter(answers('waits')).length, 1, 'answered once');
    again.cut();
  });

  it('12.10 who does not say who it is begins anew, and cannot go on without an initialize', async () => {
    const client = await McpSseClient.open(broker.port);
    client.first.cut();
    const again = await client.readAnew();
    const endpoint = await untilEndpoint(again);
    assert.notEqual(endpoint, client.endpoint);
    const call = { jsonrpc: '2.0', id: 1, method: 'tools/call' };
    const refused = await client.post(call, endpoint);
    assert.equal(refused.status, 400);
    assert.equal(refused.json<{ id: number }>().id, 1);
    again.cut();
  });

  it('12.10 (7) a session is its own: not by another’s id, not by an answer made up, not by Streamable HTTP', async () => {
    const [mine, theirs] = [await McpSseClient.open(broker.port), await McpSseClient.open(broker.port)];
    const id = theirs.first.lastEventId;
    const [stream, mac, seq] = id.split('.');
    const madeUp = [`${stream}.${mac?.replace(/./g, 'A')}.${seq}`, `${stream}..${seq}`, 'x', '0', `${id}x`];
    for (const lastEventId of madeUp) {
      assert.equal((await mine.get({ 'Last-Event-ID': lastEventId })).status, 400, lastEventId);
    }
    const again = await mine.readAnew();
    await untilMessage(again, ({ method }) => method === 'ping');
    const seen = upstream.seen.length;
    assert.equal((await mine.post({ jsonrpc: '2.0', id: 'gapless-1', result: {} })).status, 202);
    assert.equal(upstream.seen.length, seen + 1, 'it is the server’s to make something of it');
    const session = mine.endpoint.split('=')[1] as string;
    assert.equal((await mine.get({ 'Mcp-Session-Id': session })).status, 404);
    const streamable = await McpClient.open(broker.port);
    const posted = await mine.post(
      { jsonrpc: '2.0', id: 1, method: 'ping' },
      `/mcp?sessionId=${streamable.session}`,
    );
    assert.equal(posted.status, 404);
    for (const reader of [again, mine.first, theirs.first]) reader.cut();
  });

  it('12.10 (20) trouble at the server ends calls as ever, and a refusal of it is the answer to initialize', async () => {
    const client = await McpSseClient.open(broker.port);
    await client.call('mine');
    (await upstream.nextCall()).answer(500, 'oops');
    const { error } = await untilMessage(client.first, answers('mine'));
    assert.deepEqual([error?.code, error?.data?.reason, error?.data?.status], [-32016, 'refused', 500]);
    client.first.cut();
    const stranger = await McpSseClient.connect(broker.port);
    upstream.intercept = (exchange) => {
      exchange.answer(401, 'who are you?', { 'WWW-Authenticate': 'Bearer' });
      return true;
    };
    const refused = await stranger.initialize();
    upstream.intercept = () => false;
    assert.equal(refused.status, 401);
    assert.equal(refused.header('www-authenticate'), 'Bearer');
    assert.equal((await stranger.initialize()).status, 202, 'it may try again');
    stranger.first.cut();
  });

  it('12.5, 12.10 a call that was cancelled is let go of, although the server keeps it open', async () => {
    const underWay = async () => total(await scrape(broker.port), 'gapless_mcp_calls_under_way');
    const before = await underWay();
    const client = await McpSseClient.open(broker.port);
    await client.call('mine');
    const there = (await upstream.nextCall()).stream().progress(1);
    await untilMessage(client.first, ({ method }) => method === 'notifications/progress');
    assert.equal((await client.notify('notifications/cancelled', { requestId: 'mine' })).status, 202);
    await there.closed;
    assert.equal(await underWay(), before);
    assert.equal(sseMessagesOf(client.first).filter(answers('mine')).length, 0);
    client.first.cut();
  });

  it('12.10 what is no message, and what comes before initialize, is refused', async () => {
    const client = await McpSseClient.connect(broker.port);
    assert.equal((await client.post('ping')).status, 400);
    assert.equal((await client.post({ jsonrpc: '2.0', id: 1, method: 'ping' })).status, 400);
    assert.equal((await client.initialize()).status, 202);
    assert.equal((await client.initialize()).status, 400);
    assert.equal((await client.post({}, '/mcp?sessionId=unknown')).status, 404);
    client.first.cut();
  });

  it('12.10 a client that opens a stream and leaves keeps nothing', async () => {
    const client = await McpSseClient.connect(broker.port);
    client.first.cut();
    await eventually('its session to go', async () => {
      const { status } = await client.post({ jsonrpc: '2.0', id: 1, method: 'ping' });
      return status === 404;
    });
    assert.equal((await client.initialize()).status, 404);
  });
});

describe('12.10 history that is gone', () => {
  const broker = useBroker(...FLAGS, '--retention-events', '4');

  it('12.10 (10) whoever comes back too late is told so by an error for each call, and goes on', async () => {
    const client = await McpSseClient.open(broker.port);
    for (const id of [1, 'two']) await client.call(id);
    const [first, second] = [await upstream.nextCall(), await upstream.nextCall()];
    first.stream().progress(0);
    await untilMessage(client.first, ({ method }) => method === 'notifications/progress');
    client.first.cut();
    second.json({ missed: true });
    for (let n = 1; n <= 100; n++) first.progress(n);
    first.finish({ missed: true });
    await client.call('last');
    const last = await upstream.nextCall();
    await eventually('all to be there', async () => {
      return total(await scrape(broker.port), 'gapless_mcp_calls_under_way') === 1;
    });
    const again = await client.read(client.first.lastEventId);
    for (const id of [1, 'two', 'last']) {
      const { error } = await untilMessage(again, answers(id));
      assert.equal(error?.code, -32017, String(id));
    }
    assert.equal(progressOf(again).length, 0);
    last.json({ late: true });
    await client.call('next');
    (await upstream.nextCall()).json({ ok: true });
    await untilMessage(again, answers('next'));
    // A call is over a moment after its answer is there.
    await eventually('nothing to be under way', async () => {
      return total(await scrape(broker.port), 'gapless_mcp_calls_under_way') === 0;
    });
    assert.equal(total(await scrape(broker.port), 'gapless_mcp_sse_missed_total'), 1);
    again.cut();
  });
});

describe('12.10 a front that starts again', () => {
  it('12.10 whoever comes back is told that the session is over, and whoever shows nothing gets another', async (context) => {
    const directory = makeDirectory();
    context.after(() => removeDirectory(directory));
    const before = await BrokerProcess.start(...FLAGS, '--data-dir', directory);
    const client = await McpSseClient.open(before.port);
    await client.call('mine');
    (await upstream.nextCall()).stream().progress(1);
    await untilMessage(client.first, ({ method }) => method === 'notifications/progress');
    await before.kill();
    const broker = await before.startAgain();
    context.after(() => broker.stop());
    assert.equal((await client.get({ 'Last-Event-ID': client.first.lastEventId })).status, 404);
    assert.equal((await client.notify('notifications/initialized')).status, 404);
    const anew = await client.readAnew();
    const { id } = await untilMessage(anew, ({ method }) => method === 'ping');
    assert.equal((await client.post({ jsonrpc: '2.0', id, result: {} })).status, 404);
    assert.notEqual(await untilEndpoint(anew), client.endpoint);
    anew.cut();
    assert.deepEqual(broker.errors, []);
  });
});

describe('10 a front that goes down', () => {
  it('10 (5) whoever comes back over HTTP+SSE is sent away with a time, and not refused, after which nobody comes back', async () => {
    const broker = await BrokerProcess.start(...FLAGS, '--drain-ms', '4s');
    const client = await McpSseClient.open(broker.port);
    await openCrowd(broker.port);
    broker.signal('SIGTERM');
    await eventually(
      'not ready',
      async () => (await request(broker.port, { path: '/readyz' })).status === 503,
    );
    const again = await client.read(client.first.lastEventId);
    assert.equal(await again.untilEnded(), 'end');
    assert.equal(again.retries.length, 1);
    assert.equal(await client.first.untilEnded(), 'end');
    assert.deepEqual(await broker.untilExit(), { code: 0, signal: null });
  });
});
