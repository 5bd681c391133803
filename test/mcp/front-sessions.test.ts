import assert from 'node:assert/strict';
import { after, describe, it } from 'node:test';
import { describeOnEdges, useBroker } from '../support/broker-process.js';
import { eventually } from '../support/deadline.js';
import { request } from '../support/http.js';
import {
  changed,
  initializeRequest,
  McpClient,
  messagesOf,
  numbersOf,
  untilMessages,
} from '../support/mcp-client.js';
import { McpUpstream } from '../support/mcp-upstream.js';
import { METRIC } from '../support/metric-names.js';
import { scrape, total } from '../support/prometheus.js';
import { SseSubscription } from '../support/sse-client.js';

const upstream = await McpUpstream.start();
upstream.listens = true;
after(() => upstream.stop());
const FLAGS = ['--mcp', `/mcp=${upstream.url}`];

describeOnEdges('12.2 the session’s own stream', FLAGS, (broker) => {
  it('12.3 (1) it resumes like any other, with what came meanwhile', async () => {
    const client = await McpClient.open(broker.port);
    const own = await client.read();
    const there = (await upstream.nextListener()).stream();
    there.say(changed(1)).say(changed(2));
    await untilMessages(own, 2);
    own.cut();
    there.say(changed(3));
    const again = await client.read(own.lastEventId);
    there.say(changed(4));
    await untilMessages(again, 2);
    assert.deepEqual(numbersOf(again), [3, 4]);
    again.cut();
  });

  it('12.2 without an id it begins with what nobody was given yet', async () => {
    const client = await McpClient.open(broker.port);
    const own = await client.read();
    const there = (await upstream.nextListener()).stream();
    there.say(changed(1));
    await untilMessages(own, 1);
    own.cut();
    const other = await client.read(own.lastEventId);
    await other.untilEvents(1);
    other.cut();
    // What is written to a connection whose end nobody has noticed yet counts as given.
    await eventually(
      'the cut to be noticed',
      async () => total(await scrape(broker.port), METRIC.subscribers) === 0,
    );
    there.say(changed(2));
    const again = await client.read();
    there.say(changed(3));
    await untilMessages(again, 2);
    assert.deepEqual(numbersOf(again), [2, 3]);
    again.cut();
  });

  it('12.3 (18) a second GET takes over, and the first ends properly', async () => {
    const client = await McpClient.open(broker.port);
    const first = await client.read();
    const there = (await upstream.nextListener()).stream();
    await first.untilEvents(1);
    const readers = [first];
    for (let round = 0; round < 5; round++) readers.push(await client.read());
    for (const reader of readers.slice(0, -1)) assert.equal(await reader.untilEnded(), 'end');
    there.say(changed(1));
    const newest = readers.at(-1) as SseSubscription;
    await untilMessages(newest, 1);
    assert.deepEqual(
      readers.map((reader) => messagesOf(reader).length),
      [0, 0, 0, 0, 0, 1],
    );
    newest.cut();
  });

  it('12.2 (12) the front offers it although the server does not', async () => {
    upstream.listens = false;
    const client = await McpClient.open(broker.port);
    const seen = upstream.seen.length;
    const own = await client.read();
    await own.untilEvents(1);
    // It may be asked a moment later, and is not to be taken for one of the next test.
    await eventually('the server to be asked', () => upstream.seen.slice(seen).includes('GET'));
    own.cut();
    const again = await client.read(own.lastEventId);
    await again.untilEvents(1);
    assert.notEqual(again.lastEventId, own.lastEventId);
    again.cut();
    upstream.listens = true;
  });

  it('12.2 messages that belong to a call do not come on it, nor the other way round', async () => {
    const client = await McpClient.open(broker.port);
    const own = await client.read();
    const there = (await upstream.nextListener()).stream();
    const call = await client.call(1);
    const atCall = await upstream.nextCall();
    there.say(changed(1));
    atCall.stream().progress(1).finish({});
    await call.untilEnded();
    await untilMessages(own, 1);
    assert.deepEqual(numbersOf(own), [1]);
    assert.deepEqual(
      messagesOf(call).map(({ method }) => method),
      ['notifications/progress', undefined],
    );
    own.cut();
  });
});

describeOnEdges('12.1 who may', FLAGS, (broker) => {
  it('12.1 a session that was deleted is 404, and at the server too; so is one that never was', async () => {
    const client = await McpClient.open(broker.port);
    assert.equal((await client.delete()).status, 200);
    for (const answer of [await client.notify('ping'), await client.get(), await client.delete()]) {
      assert.equal(answer.status, 404);
      assert.equal(answer.json<{ error: { code: number } }>().error.code, -32001);
    }
    const stranger = await client.post(
      { jsonrpc: '2.0', id: 1, method: 'ping' },
      { 'Mcp-Session-Id': 'unknown' },
    );
    assert.equal(stranger.status, 404);
  });

  it('12.1 (7) an id of another session, and one that was made up, are refused', async () => {
    const mine = await McpClient.open(broker.port);
    const theirs = await McpClient.open(broker.port);
    const call = await theirs.call(1);
    const there = await upstream.nextCall();
    await call.untilEvents(1);
    const [stream, mac, seq] = call.lastEventId.split('.');
    const ids = [
      call.lastEventId,
      `${stream}.${mac?.replace(/./g, 'A')}.${seq}`,
      'x',
      '0',
      'k2.5',
      `${stream}..${seq}`,
    ];
    for (const id of ids) {
      const answer = await mine.get(id);
      assert.equal(answer.status, 400, id);
      assert.equal(answer.json<{ error: { code: number } }>().error.code, -32000);
    }
    there.json({});
    await call.untilEnded();
  });

  it('12.1 pages of other origins are kept out, those of this machine are not', async () => {
    const initialize = (origin: string, host = '127.0.0.1') =>
      request(broker.port, initializeRequest({ headers: { Origin: origin, Host: host } }));
    for (const origin of [
      'http://evil.example',
      'null',
      'http://localhost.evil.example',
      'http://127.0.0.1.evil.example',
    ])
      assert.equal((await initialize(origin, origin.slice(7))).status, 403, origin);
    for (const origin of ['http://localhost:5173', 'http://127.0.0.1', 'https://[::1]:8443'])
      assert.equal((await initialize(origin)).status, 200, origin);
  });

  it('12.1 what is not as it has to be is refused before the server hears of it', async () => {
    const client = await McpClient.open(broker.port);
    const seen = upstream.seen.length;
    const ping = { jsonrpc: '2.0', id: 1, method: 'ping' };
    const statusOf = async (headers: Record<string, string>, message: unknown = ping) =>
      (await client.post(message, headers)).status;
    assert.equal(await statusOf({ Accept: 'application/json' }), 406);
    assert.equal(await statusOf({ Accept: 'text/event-stream' }), 406);
    assert.equal(await statusOf({ 'Content-Type': 'text/plain' }), 415);
    assert.equal(await statusOf({ 'MCP-Protocol-Version': '1999-01-01' }), 400);
    assert.equal(await statusOf({ 'Mcp-Session-Id': '' }), 400);
    assert.equal(await statusOf({}, { id: 1, method: 'ping' }), 400);
    assert.equal(await statusOf({}, []), 400);
    assert.equal(await statusOf({}, 'ping'), 400);
    assert.equal(await statusOf({}, { ...ping, id: { a: 1 } }), 400);
    assert.equal(await statusOf({}, { ...ping, id: 'x'.repeat(2000) }), 400);
    assert.equal((await client.get(undefined, { Accept: 'application/json' })).status, 406);
    const put = await request(broker.port, { method: 'PUT', path: '/mcp', headers: client.headers });
    assert.equal(put.status, 405);
    assert.equal(put.header('allow'), 'GET, POST, DELETE, OPTIONS');
    assert.equal(upstream.seen.length, seen);
  });

  it('2.4 the streams of sessions can be neither named nor listed', async () => {
    const client = await McpClient.open(broker.port);
    const call = await client.call(1);
    const there = await upstream.nextCall();
    await call.untilEvents(1);
    const name = '~mcp:any:c1';
    for (const path of [`/v1/streams/${name}`, `/v1/streams/${name}/state`]) {
      const answer = await request(broker.port, { path, headers: { Accept: 'application/json' } });
      assert.equal(answer.status, 400);
      assert.equal(answer.json().code, 'invalid_stream_name');
    }
    const publish = await request(broker.port, { path: `/v1/streams/${name}`, body: 'x' });
    assert.equal(publish.status, 400);
    const list = await request(broker.port, {
      path: '/v1/streams?prefix=~mcp',
      headers: { Accept: 'application/json' },
    });
    assert.doesNotMatch(list.text, /~mcp/);
    there.json({});
    await call.untilEnded();
  });
});

describe('12.4 history that is gone', () => {
  const broker = useBroker(...FLAGS, '--retention-events', '4', '--mcp-calls-max', '2');

  async function evicted(id: string | number): Promise<{ client: McpClient; lastEventId: string }> {
    const client = await McpClient.open(broker.port);
    const call = await client.call(id);
    const there = (await upstream.nextCall()).stream();
    there.progress(0);
    await untilMessages(call, 1);
    call.cut();
    for (let n = 1; n <= 100; n++) there.progress(n);
    there.finish({});
    const lastEventId = call.events[0]?.id as string;
    const newest = await client.read(call.lastEventId);
    await newest.untilEnded();
    return { client, lastEventId };
  }

  for (const id of [17, 'seventeen', 0, '']) {
    it(`12.4 (8, 10) the call ${JSON.stringify(id)} ends with an error of its own id, and not with a 404`, async () => {
      const { client, lastEventId } = await evicted(id);
      const again = await client.read(lastEventId);
      assert.equal(await again.untilEnded(), 'end');
      const [answer, ...more] = messagesOf(again);
      assert.deepEqual(more, []);
      assert.equal(answer?.id, id);
      assert.equal(answer?.error?.code, -32017);
      assert.equal(answer?.error?.data?.reason, 'history_gone');
      assert.ok(again.events.every(({ carriesId }) => carriesId));
      assert.equal((await client.get(again.lastEventId)).status, 405, 'nothing more comes after that');
      assert.equal((await client.notify('ping')).status, 202, 'the session lives on');
    });
  }

  it('12.4 (10) the same when the stream is gone as a whole', async () => {
    const client = await McpClient.open(broker.port);
    const ids: string[] = [];
    for (const id of ['gone', 'kept', 'kept as well']) {
      const call = await client.call(id);
      (await upstream.nextCall()).json({});
      await call.untilEnded();
      ids.push(call.events[0]?.id as string);
    }
    const kept = await client.read(ids[1]);
    await kept.untilEnded();
    assert.deepEqual(messagesOf(kept)[0]?.result, {});
    const gone = await client.read(ids[0]);
    await gone.untilEnded();
    assert.equal(messagesOf(gone)[0]?.error?.code, -32017);
    assert.equal(messagesOf(gone)[0]?.id, 'gone');
  });

  it('12.4 the session’s own stream goes on from now, and says what to ask for again', async () => {
    const client = await McpClient.open(broker.port);
    const own = await client.read();
    const there = (await upstream.nextListener()).stream();
    await own.untilEvents(1);
    own.cut();
    for (let n = 1; n <= 100; n++) there.say(changed(n));
    // Once 100 has come the others are gone: a reader that names no event begins with what is kept, and hears of the rest.
    const newest = await client.read();
    there.say(changed(101));
    await newest.until('the newest', () => numbersOf(newest).at(-1) === 101);
    newest.cut();
    const again = await client.read(own.lastEventId);
    await untilMessages(again, 1);
    there.say(changed(102));
    await untilMessages(again, 2);
    assert.deepEqual(
      messagesOf(again).map(({ method, params }) => params?.n ?? method),
      ['notifications/tools/list_changed', 102],
    );
    again.cut();
  });
});
