import assert from 'node:assert/strict';
import { it } from 'node:test';
import { describeOnEdges } from '../support/broker-process.js';
import { cursorOf, range } from '../support/cursor.js';
import { eventually } from '../support/deadline.js';
import {
  assertProblem,
  createStream,
  freshStream,
  type Problem,
  publish,
  publishLines,
  publishRequest,
} from '../support/gapless-client.js';
import { HttpConnection, request } from '../support/http.js';
import { SseSubscription } from '../support/sse-client.js';
import { apiKey, bearer, Files } from '../support/tokens.js';
import { LiveSocket } from '../support/websocket-client.js';

const KIB = 1024;
const EVENT_BYTES = 32 * KIB;
/** More than the kernel's buffers of one connection take. */
const FLOOD_EVENTS = 400;

interface Reader {
  by: string;
  state: string;
  written: number;
  delivered: number;
  principal: string;
}

interface ReadState {
  committed: number;
  head: number;
  named: { name: string; acked: string; lag: number | null }[];
  readers: { total: number; complete: boolean; slowest: Reader[] };
}

interface Happening {
  number: number;
  at: number;
  outcome: string;
  stream: string;
  principal: string;
  cursor?: string;
  floor?: number;
  head?: number;
  code?: string;
  reason?: string;
  request?: string;
}

interface ActivityPage {
  activity: Happening[];
  next: string;
  missed: number | null;
}

const files = new Files();
const operator = apiKey('operator', { admin: true });
const reader = apiKey('reader', { publish: ['*'], subscribe: ['*'] });
const keysFile = files.write('api-keys.json', JSON.stringify({ apiKeys: [operator.entry, reader.entry] }));

async function get<T>(port: number, path: string, headers: Record<string, string> = {}): Promise<T> {
  const response = await request(port, { path, headers });
  assert.equal(response.status, 200, response.text);
  assert.equal(response.header('cache-control'), 'no-store');
  return response.json<T>();
}

async function flood(port: number, stream: string, events: number): Promise<void> {
  const connection = await HttpConnection.open(port);
  for (const _ of range(1, events / 8)) {
    const lines = range(1, 8).map(() => '.'.repeat(EVENT_BYTES));
    await publishLines(connection, stream, lines);
  }
  connection.destroy();
}

describeOnEdges('2.5 who reads a stream', ['--memory', '64MiB'], (broker) => {
  const readersOf = (stream: string, query = ''): Promise<ReadState> =>
    get(broker.port, `/v1/streams/${stream}/readers${query}`);

  it('2.5 each reader is there with what was written to it, those furthest behind first', async () => {
    const stream = freshStream('read');
    await createStream(broker.port, stream, { retention: { bytes: 32 * KIB * KIB } });
    const stalled = await SseSubscription.open(broker.port, stream);
    await stalled.untilPrimed();
    stalled.stall();
    const socket = await LiveSocket.open(broker.port, stream);
    const several = await SseSubscription.open(broker.port, stream, { streams: [stream] });
    await flood(broker.port, stream, FLOOD_EVENTS);
    const state = await eventually('two that have all of it, and one that has not', async () => {
      const found = await readersOf(stream);
      const { slowest } = found.readers;
      return slowest.filter(({ delivered }) => delivered === FLOOD_EVENTS).length === 2 && found;
    });
    const { total, complete, slowest } = state.readers;
    assert.deepEqual([total, complete, slowest.length], [3, true, 3]);
    const [last] = slowest as [Reader];
    assert.deepEqual([last.by, last.state, last.principal], ['sse', 'stalled', '']);
    assert.ok(last.delivered < last.written && last.written < FLOOD_EVENTS, JSON.stringify(last));
    assert.deepEqual(
      slowest
        .slice(1)
        .map(({ by }) => by)
        .sort(),
      ['sse-many', 'websocket'],
    );
    assert.equal(state.committed, FLOOD_EVENTS);

    const limited = await readersOf(stream, '?limit=1');
    assert.deepEqual(limited.readers.total, 3);
    assert.deepEqual(
      limited.readers.slowest.map(({ state }) => state),
      ['stalled'],
    );

    const { streams } = await get<{ streams: { lag: number; ackedLag: number }[] }>(
      broker.port,
      `/v1/streams?prefix=${stream}&lag=true`,
    );
    assert.deepEqual(streams.length, 1);
    assert.equal(streams[0]?.lag, FLOOD_EVENTS - last.delivered);
    assert.equal(streams[0]?.ackedLag, 0);
    stalled.cut();
    several.cut();
    socket.cut();
  });

  it('2.5 named subscribers are there, and their lag is in a list that asks for it', async () => {
    const stream = freshStream('named');
    const { epoch } = await publishLines(broker.port, stream, range(1, 9).map(String));
    const query = `subscriber=billing&cursor=${cursorOf(epoch, 2)}`;
    const subscription = await SseSubscription.open(broker.port, stream, { query });
    await subscription.untilSeq(9);
    const { named } = await readersOf(stream);
    assert.deepEqual(named, [{ name: 'billing', acked: cursorOf(epoch, 2), lag: 7 }]);
    const list = (query: string) =>
      get<{ streams: Record<string, unknown>[] }>(broker.port, `/v1/streams?prefix=${stream}${query}`);
    const [asked] = (await list('&lag=true')).streams;
    assert.deepEqual([asked?.lag, asked?.ackedLag], [0, 7]);
    const [plain] = (await list('')).streams;
    assert.ok(plain !== undefined && !('lag' in plain) && !('ackedLag' in plain));
    subscription.cut();
  });

  it('2.5 what is not there is 404 and is not made, and what is asked for badly is 400', async () => {
    const stream = freshStream('absent');
    const path = `/v1/streams/${stream}/readers`;
    assertProblem(await request(broker.port, { path }), 404, 'stream_not_found');
    assertProblem(await request(broker.port, { path: `${path}?limit=0` }), 400, 'invalid_query');
    assertProblem(await request(broker.port, { path: '/v1/streams?lag=yes' }), 400, 'invalid_query');
    const head = await request(broker.port, { method: 'HEAD', path });
    assert.equal(head.status, 404);
  });
});

describeOnEdges('10 what happened lately', ['--memory', '64MiB'], (broker) => {
  const activity = (query = ''): Promise<ActivityPage> => get(broker.port, `/v1/activity${query}`);

  /** What happened to a stream, once there is so much of it. */
  async function happened(stream: string, count: number): Promise<Happening[]> {
    return eventually(`${count} things to happen to ${stream}`, async () => {
      const page = await activity('?limit=1000');
      const about = page.activity.filter((happening) => happening.stream === stream);
      return about.length >= count && about;
    });
  }

  it('10 a resume is there with its cursor and with what it met', async () => {
    const stream = freshStream('resumed');
    const { epoch } = await publishLines(broker.port, stream, range(1, 5).map(String));
    for (const seq of [5, 2]) {
      const back = await SseSubscription.open(broker.port, stream, { lastEventId: cursorOf(epoch, seq) });
      back.cut();
    }
    const socket = await LiveSocket.open(broker.port, stream, { query: `cursor=${cursorOf(epoch, 3)}` });
    socket.cut();
    const about = await happened(stream, 3);
    const met = about.map(({ outcome, cursor, head }) => [outcome, cursor, head]);
    assert.deepEqual(met.sort(), [
      ['live', cursorOf(epoch, 5), 5],
      ['ring', cursorOf(epoch, 2), 5],
      ['ring', cursorOf(epoch, 3), 5],
    ]);
  });

  it('10 a refusal is there with its reason, where the stream stood, and the number that the client was given', async () => {
    const stream = freshStream('refused');
    await createStream(broker.port, stream, { retention: { events: 2 } });
    const { epoch } = await publishLines(broker.port, stream, range(1, 20).map(String));
    const path = `/v1/streams/${stream}`;
    const refused = await request(broker.port, {
      path,
      headers: { Accept: 'text/event-stream', 'Last-Event-ID': cursorOf(epoch, 1) },
    });
    const problem = refused.json<Problem>();
    const large = 'x'.repeat(2 * KIB * KIB);
    assertProblem(await request(broker.port, publishRequest(stream, large)), 413, 'event_too_large');

    const about = await happened(stream, 2);
    const evicted = about.find(({ reason }) => reason === 'evicted');
    assert.deepEqual(
      [evicted?.outcome, evicted?.code, evicted?.cursor, evicted?.floor, evicted?.head, evicted?.request],
      [
        'refused',
        'resume_unavailable',
        cursorOf(epoch, 1),
        problem.floor,
        20,
        refused.header('gapless-request'),
      ],
    );
    assert.ok(about.some(({ outcome, code }) => outcome === 'refused' && code === 'event_too_large'));
  });

  it('10 a reader that eviction overtakes is there', async () => {
    const stream = freshStream('overtaken');
    await createStream(broker.port, stream, { retention: { bytes: 512 * KIB } });
    const subscription = await SseSubscription.open(broker.port, stream);
    await subscription.untilPrimed();
    subscription.stall();
    await flood(broker.port, stream, FLOOD_EVENTS);
    subscription.unstall();
    await subscription.untilEnded();
    const [overtaken] = await happened(stream, 1);
    assert.deepEqual([overtaken?.outcome, overtaken?.reason], ['overtaken', 'evicted']);
  });

  it('10 who reads on gets each thing once, in order, and is told what it missed', async () => {
    const stream = freshStream('on');
    const { epoch } = await publish(broker.port, stream, 'x');
    const path = `/v1/streams/${stream}`;
    const refuse = async (seq: number) => {
      const headers = { Accept: 'text/event-stream', 'Last-Event-ID': cursorOf(epoch, seq) };
      assert.equal((await request(broker.port, { path, headers })).status, 410);
    };
    for (const seq of range(10, 14)) await refuse(seq);
    await happened(stream, 5);
    let { next } = await activity('?limit=1');
    const seen: Happening[] = [];
    for (;;) {
      const page = await activity(`?limit=2&cursor=${next}`);
      assert.ok(page.activity.length <= 2);
      assert.equal(page.missed, 0);
      seen.push(...page.activity);
      if (page.activity.length === 0) break;
      next = page.next;
    }
    const numbers = seen.map(({ number }) => number);
    assert.deepEqual(numbers, range(numbers[0] as number, numbers.at(-1) as number));
    assert.equal(seen.filter((happening) => happening.stream === stream).length >= 5, true);
    // A cursor of another process: what is kept, and nobody knows how much is not.
    assert.equal((await activity('?cursor=0000000000.3')).missed, null);
    assertProblem(await request(broker.port, { path: '/v1/activity?cursor=x' }), 400, 'malformed');
    assertProblem(await request(broker.port, { path: '/v1/activity?limit=0' }), 400, 'invalid_query');
  });
});

describeOnEdges('9.1 who may look on', ['--api-keys-file', keysFile], (broker) => {
  it('9.1 the readers of a stream and what happened are for admins, who see who it was', async () => {
    const stream = freshStream('seen');
    await request(broker.port, {
      ...publishRequest(stream, 'x'),
      headers: { 'Content-Type': 'text/plain', ...bearer(reader.key) },
    });
    const subscription = await SseSubscription.open(broker.port, stream, { headers: bearer(reader.key) });
    const paths = [`/v1/streams/${stream}/readers`, '/v1/activity', `/v1/streams?lag=true`];
    for (const path of paths) {
      assertProblem(await request(broker.port, { path }), 401, 'unauthorized');
      const response = await request(broker.port, { path, headers: bearer(reader.key) });
      assertProblem(response, 403, 'forbidden');
    }
    const [path = ''] = paths;
    const state = await get<ReadState>(broker.port, path, bearer(operator.key));
    assert.deepEqual(
      state.readers.slowest.map(({ principal }) => principal),
      ['reader'],
    );
    subscription.cut();
    await eventually('the refusals of before', async () => {
      const { activity } = await get<ActivityPage>(broker.port, '/v1/activity', bearer(operator.key));
      return (
        activity.some(({ principal, code }) => principal === 'reader' && code === 'forbidden') &&
        activity.some(({ principal, code }) => principal === '' && code === 'unauthorized')
      );
    });
  });
});
