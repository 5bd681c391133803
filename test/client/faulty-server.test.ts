import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { GaplessClient, type SubscriptionStatus } from '#gapless/client/client.js';
import { answers, type Script, ScriptedServer, streams, streamsAndEnds } from './scripted-server.js';

const EPOCH = 'abcdefgh01';
const at = (seq: number): string => `id: ${EPOCH}.${seq}`;
const event = (seq: number): string => `${at(seq)}\ndata: event ${seq}`;
const CLOSED = `event: stream_closed\ndata: {"cursor":"${EPOCH}.3"}`;
const FAST = { retryMs: 1 };

describe('a subscription of the client, with a server or a network that misbehaves', () => {
  async function follow(
    scripts: readonly Script[],
    options: { cursor?: string; idleTimeoutMs?: number; attemptsMax?: number; types?: string[] } = {},
  ): Promise<{ seen: string[]; asked: (string | undefined)[]; errors: string[]; thrown: unknown }> {
    const server = await ScriptedServer.start(...scripts);
    const seen: string[] = [];
    const errors: string[] = [];
    const onStatus = (status: SubscriptionStatus): void => {
      if (status.state === 'waiting') errors.push(status.error.code);
    };
    let thrown: unknown = null;
    try {
      const client = new GaplessClient({ url: server.url });
      for await (const { data } of client.subscribe('s', {
        cursor: `${EPOCH}.0`,
        ...FAST,
        onStatus,
        ...options,
      })) {
        seen.push(data);
      }
    } catch (error) {
      thrown = error;
    } finally {
      await server.stop();
    }
    const asked = server.requests.map(({ headers }) => headers['last-event-id'] as string | undefined);
    return { seen, asked, errors, thrown };
  }

  const ALL = ['event 1', 'event 2', 'event 3'];

  for (const [what, wrong] of [
    ['an event is missing', [at(0), event(1), event(3)]],
    ['an event comes twice', [at(0), event(1), event(1), event(2)]],
    ['an event is of another epoch', [at(0), event(1), `id: zzzzzzzz99.2\ndata: x`]],
    ['an event has no id', [at(0), event(1), 'data: x']],
    ['an id is none', [at(0), event(1), 'id: 2\ndata: x']],
    ['the stream begins behind the cursor', [at(1), event(2)]],
    ['the stream ends before its last event', [at(0), event(1), CLOSED]],
  ] as const) {
    it(`${what}: it is not handed over, and another connection begins before it`, async () => {
      const right = streamsAndEnds([at(1), event(2), event(3), CLOSED]);
      const whole = streamsAndEnds([at(0), event(1), event(2), event(3), CLOSED]);
      const isAtStart = what === 'the stream begins behind the cursor';
      const { seen, asked, errors, thrown } = await follow([streams(...wrong), isAtStart ? whole : right]);
      assert.equal(thrown, null);
      assert.deepEqual(seen, ALL);
      assert.deepEqual(errors, ['not_contiguous']);
      assert.deepEqual(asked, [`${EPOCH}.0`, `${EPOCH}.${isAtStart ? 0 : 1}`]);
    });
  }

  it('throws when every connection brings what does not follow', async () => {
    const { seen, thrown, asked } = await follow([streams(at(0), event(2))]);
    assert.deepEqual([seen, (thrown as { code: string }).code, asked.length], [[], 'not_contiguous', 3]);
  });

  it('gives no part of an event that was cut, and takes what came before', async () => {
    const cut: Script = (_request, response) => {
      response.writeHead(200, { 'Content-Type': 'text/event-stream' });
      response.write(`${at(0)}\n\n${event(1)}\n\n${at(2)}\ndata: eve`, () =>
        response.socket?.resetAndDestroy(),
      );
    };
    const { seen, asked } = await follow([cut, streamsAndEnds([at(1), event(2), event(3), CLOSED])]);
    assert.deepEqual(seen, ALL);
    assert.deepEqual(asked.at(-1), `${EPOCH}.1`);
  });

  it('comes back after refusals that may pass, and after answers that are no answer', async () => {
    const { seen, errors } = await follow([
      answers(503, { code: 'draining', title: 'x' }, { 'Retry-After': '0' }),
      answers(503, null),
      answers(429, null),
      (_request, response) => response.socket?.destroy(),
      streamsAndEnds([at(0), event(1), event(2), event(3)]),
      streamsAndEnds([at(3), CLOSED]),
    ]);
    assert.deepEqual(seen, ALL);
    assert.deepEqual(errors, [
      'draining',
      'unexpected_answer',
      'unexpected_answer',
      'unreachable',
      'unreachable',
    ]);
  });

  it('throws refusals that cannot pass at once, and others after so many attempts', async () => {
    const refused = await follow([answers(404, { code: 'stream_not_found', title: 'x' })]);
    assert.deepEqual(
      [(refused.thrown as { code: string }).code, refused.asked.length],
      ['stream_not_found', 1],
    );
    const strange = await follow([answers(418, null)]);
    assert.deepEqual(
      [(strange.thrown as { code: string }).code, strange.asked.length],
      ['unexpected_answer', 1],
    );
    const tired = await follow([answers(503, null)], { attemptsMax: 3 });
    assert.deepEqual([(tired.thrown as { status: number }).status, tired.asked.length], [503, 3]);
  });

  it('takes Infinity for no limit of time', async () => {
    const slowly: Script = (request, response) => {
      setTimeout(() => streamsAndEnds([at(0), event(1), event(2), event(3), CLOSED])(request, response), 20);
    };
    const server = await ScriptedServer.start(slowly);
    const client = new GaplessClient({ url: server.url, answerTimeoutMs: Number.POSITIVE_INFINITY });
    const options = { cursor: `${EPOCH}.0`, idleTimeoutMs: Number.POSITIVE_INFINITY, attemptsMax: 1 };
    const seen: string[] = [];
    for await (const { data } of client.subscribe('s', options)) seen.push(data);
    assert.deepEqual(seen, ALL);
    await client.deleteStream('s');
    await server.stop();
  });

  it('leaves a connection that brings nothing for too long', async () => {
    const { seen, asked } = await follow(
      [streams(at(0), event(1)), streamsAndEnds([at(1), event(2), event(3), CLOSED])],
      { idleTimeoutMs: 1000 },
    );
    assert.deepEqual(seen, ALL);
    assert.deepEqual(asked, [`${EPOCH}.0`, `${EPOCH}.1`]);
  });

  it('waits for what a server asks for, and at most for a day', async () => {
    const aborting = new AbortController();
    const server = await ScriptedServer.start(streamsAndEnds([`retry: ${10 ** 12}`, at(0)]));
    const delays: number[] = [];
    const onStatus = (status: SubscriptionStatus): void => {
      if (status.state !== 'waiting') return;
      delays.push(status.delayMs);
      aborting.abort(new Error('enough'));
    };
    const options = { cursor: `${EPOCH}.0`, onStatus, signal: aborting.signal };
    const events = new GaplessClient({ url: server.url }).subscribe('s', options);
    await assert.rejects(events[Symbol.asyncIterator]().next(), { message: 'enough' });
    assert.deepEqual(delays, [86_400_000]);
    await server.stop();
  });

  it('does not count as failures connections that brought heartbeats and no event', async () => {
    // Each begins further on, for its types leave events out: so the heartbeat can wait until that was read.
    const quiet = (seq: number): Script => {
      return (_request, response) => {
        response.writeHead(200, { 'Content-Type': 'text/event-stream' });
        response.write(`retry: 1\n\n${at(seq)}\n\n`);
        const beat = (): void => {
          if (events.cursor === `${EPOCH}.${seq}`) response.end(':\n\n');
          else setImmediate(beat);
        };
        beat();
      };
    };
    const server = await ScriptedServer.start(
      ...[1, 2, 3, 4].map(quiet),
      streamsAndEnds([at(4), event(5), CLOSED]),
    );
    const client = new GaplessClient({ url: server.url });
    const events = client.subscribe('s', { types: ['message'], attemptsMax: 2, ...FAST });
    const seen: string[] = [];
    for await (const { data } of events) seen.push(data);
    assert.deepEqual([seen, server.requests.length], [['event 5'], 5]);
    await server.stop();
  });

  it('throws when the answer is no event stream: what stands there is not the broker', async () => {
    const page: Script = (_request, response) =>
      void response.writeHead(200, { 'Content-Type': 'text/html' }).end('<p>Please log in');
    const { thrown, asked } = await follow([page]);
    assert.deepEqual(
      [(thrown as { code: string }).code, (thrown as Error).message, asked.length],
      ['unexpected_answer', 'the answer was text/html, and no event stream', 1],
    );
  });

  it('takes the first position that it is told where it has none, and resumes from it before any event', async () => {
    const { seen, asked } = await follow(
      [streamsAndEnds([at(1)]), streamsAndEnds([at(1), event(2), event(3), CLOSED])],
      { cursor: 'latest' },
    );
    assert.deepEqual(seen, ['event 2', 'event 3']);
    assert.deepEqual(asked, ['latest', `${EPOCH}.1`]);
  });

  it('asks for another token when the last one is not taken, once', async () => {
    const refuse = answers(401, { code: 'unauthorized', title: 'x', reason: 'signature' });
    const server = await ScriptedServer.start(
      refuse,
      streamsAndEnds([at(0), event(1), event(2), event(3), CLOSED]),
      refuse,
    );
    let tokens = 0;
    const client = new GaplessClient({ url: server.url, token: () => `token-${++tokens}` });
    const seen: string[] = [];
    for await (const { data } of client.subscribe('s', { cursor: `${EPOCH}.0`, ...FAST })) seen.push(data);
    assert.deepEqual(seen, ALL);
    await assert.rejects(client.state('s'), { status: 401, code: 'unauthorized', name: 'GaplessError' });
    assert.deepEqual(
      server.requests.map(({ headers }) => headers.authorization),
      ['Bearer token-1', 'Bearer token-2', 'Bearer token-2', 'Bearer token-3'],
    );
    await server.stop();
  });
});
