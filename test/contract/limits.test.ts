import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { useBroker } from '../support/broker-process.js';
import { cursorOf, range } from '../support/cursor.js';
import { eventually, withDeadline } from '../support/deadline.js';
import {
  assertProblem,
  deleteStream,
  freshStream,
  MEDIA_TYPES,
  type Published,
  publish,
  publishLines,
  publishRequest,
  readAll,
  stateOf,
} from '../support/gapless-client.js';
import { HttpConnection, request } from '../support/http.js';
import { METRIC } from '../support/metric-names.js';
import { scrape, total } from '../support/prometheus.js';
import { SseSubscription } from '../support/sse-client.js';
import { LiveSocket } from '../support/websocket-client.js';

const KIB = 1024;

describe('3.6 sizes', () => {
  const broker = useBroker(
    ...[
      '--event-bytes-max',
      '4KiB',
      '--body-bytes-max',
      '64KiB',
      '--batch-events-max',
      '100',
      '--retention-bytes',
      '1MiB',
    ],
  );

  it('3.6 an event of exactly the limit is taken, one byte more is 413 event_too_large', async () => {
    const stream = freshStream('event');
    await publish(broker.port, stream, 'x'.repeat(4 * KIB));
    for (const [body, contentType] of [
      ['x'.repeat(4 * KIB + 1), MEDIA_TYPES.text],
      ['x'.repeat(4 * KIB + 1), MEDIA_TYPES.json],
      [Buffer.alloc(4 * KIB + 1), MEDIA_TYPES.binary],
      [`short\n${'x'.repeat(4 * KIB + 1)}\nshort`, MEDIA_TYPES.ndjson],
      [JSON.stringify([{ data: 'short' }, { data: 'x'.repeat(4 * KIB + 1) }]), MEDIA_TYPES.batch],
    ] as const) {
      assertProblem(
        await request(broker.port, publishRequest(stream, body, contentType)),
        413,
        'event_too_large',
      );
    }
    assert.equal((await stateOf(broker.port, stream)).head, 1);
  });

  it('3.6 the limit counts bytes, not characters', async () => {
    const stream = freshStream('utf8');
    await publish(broker.port, stream, 'é'.repeat(2 * KIB));
    const asked = publishRequest(stream, `${'é'.repeat(2 * KIB)}x`);
    assertProblem(await request(broker.port, asked), 413, 'event_too_large');
  });

  it('3.6 a body over the limit is 413 body_too_large, also if it only announces to be', async () => {
    const stream = freshStream('body');
    await publish(broker.port, stream, 'before');
    const lines = range(1, 90)
      .map(() => 'x'.repeat(1_000))
      .join('\n');
    assertProblem(
      await request(broker.port, publishRequest(stream, lines, MEDIA_TYPES.ndjson)),
      413,
      'body_too_large',
    );

    const connection = await HttpConnection.open(broker.port);
    connection.send(
      `POST /v1/streams/${stream} HTTP/1.1\r\nHost: x\r\nContent-Length: 99999999999\r\n\r\nbegin`,
    );
    assertProblem(await connection.nextResponse(), 413, 'body_too_large');
    connection.destroy();
    assert.equal((await stateOf(broker.port, stream)).head, 1);
  });

  it('3.6 more events than the limit are 413 batch_too_large, as many as the limit are taken', async () => {
    const stream = freshStream('batch');
    await publishLines(broker.port, stream, range(1, 100).map(String));
    const tooMany = range(1, 101).map(String).join('\n');
    assertProblem(
      await request(broker.port, publishRequest(stream, tooMany, MEDIA_TYPES.ndjson)),
      413,
      'batch_too_large',
    );
    assert.equal((await stateOf(broker.port, stream)).head, 100);
  });
});

describe('3.6 a batch that no stream could hold', () => {
  const broker = useBroker('--memory', '1MiB', '--stream-bytes-max', '64KiB', '--retention-bytes', '16KiB');

  it('3.6 is 413 and changes nothing; the same events in smaller batches are taken', async () => {
    const stream = freshStream('whole');
    const before = await publish(broker.port, stream, 'before');
    const lines = range(1, 200).map((line) => `${line} `.padEnd(1_000, '.'));
    const response = await request(broker.port, publishRequest(stream, lines.join('\n'), MEDIA_TYPES.ndjson));
    assertProblem(response, 413, 'batch_too_large');
    const state = await stateOf(broker.port, stream);
    assert.deepEqual([state.epoch, state.floor, state.head], [before.epoch, 1, 1]);
    for (let at = 0; at < lines.length; at += 10)
      await publishLines(broker.port, stream, lines.slice(at, at + 10));
    assert.equal((await stateOf(broker.port, stream)).head, 201);
  });
});

describe('3.6 no memory', () => {
  const broker = useBroker('--memory', '1MiB', '--retention-bytes', '16KiB', '--stream-bytes-max', '256KiB');
  const CROWD_MAX = 20_000;

  it('3.6 when the memory is taken a new stream is 507 insufficient_memory and does not exist; the others live on', async () => {
    const first = freshStream('first');
    const published = await publish(broker.port, first, 'event 1');
    const connection = await HttpConnection.open(broker.port);
    const placed: [string, Published][] = [];
    let refused: string | undefined;
    while (refused === undefined && placed.length < CROWD_MAX) {
      const stream = freshStream('crowd');
      const response = await connection.request(publishRequest(stream, 'x'.repeat(500)));
      if (response.status === 200) {
        placed.push([stream, response.json<Published>()]);
      } else {
        assertProblem(response, 507, 'insufficient_memory');
        refused = stream;
      }
    }
    assert.ok(refused !== undefined, `${placed.length} streams fit into 1 MiB`);
    assert.equal((await request(broker.port, { path: `/v1/streams/${refused}/state` })).status, 404);

    for (const seq of range(2, 50)) {
      const { epoch, first: at } = await publish(connection, first, `event ${seq}`);
      assert.deepEqual([epoch, at], [published.epoch, seq]);
    }
    const { floor, head } = await stateOf(broker.port, first);
    const expected = range(floor, head).map((seq) => `event ${seq}`);
    assert.deepEqual(
      (await readAll(broker.port, first)).map(({ data }) => data),
      expected,
    );
    for (const [stream, { epoch, last }] of placed) {
      const state = await stateOf(broker.port, stream);
      assert.deepEqual([state.epoch, state.head], [epoch, last]);
    }
    connection.destroy();
  });

  it('3.6 a deleted stream makes room for another', async () => {
    const streams: string[] = [];
    for (;;) {
      const stream = freshStream('filler');
      const response = await request(broker.port, publishRequest(stream, 'x'));
      if (response.status === 507) break;
      streams.push(stream);
      assert.ok(streams.length < CROWD_MAX);
    }
    const list = await request(broker.port, { path: '/v1/streams?limit=1' });
    const victim = /[a-z]+-[0-9a-f]{12}/.exec(list.text)?.[0];
    assert.ok(victim !== undefined, list.text);
    assert.ok((await request(broker.port, { method: 'DELETE', path: `/v1/streams/${victim}` })).status < 300);
    await publish(broker.port, freshStream('room'), 'x');
  });
});

describe('3.6 a stream within its memory', () => {
  const broker = useBroker('--memory', '1MiB', '--stream-bytes-max', '128KiB', '--retention-bytes', '0');

  it('3.6 without a limit of its own it evicts its oldest events when its memory is full; no resume ever skips', async () => {
    const stream = freshStream('full');
    const { epoch } = await publish(broker.port, stream, 'event 1'.padEnd(1_000, '.'));
    for (const seq of range(2, 400)) await publish(broker.port, stream, `event ${seq}`.padEnd(1_000, '.'));
    const { floor, head } = await stateOf(broker.port, stream);
    assert.equal(head, 400);
    assert.ok(floor > 1, 'nothing was evicted');
    assert.ok(head - floor + 1 >= 32, `only ${head - floor + 1} events of 1000 bytes in 128 KiB`);
    const below = await SseSubscription.ask(broker.port, stream, { lastEventId: cursorOf(epoch, floor - 2) });
    assert.equal(assertProblem(await below.refusal(), 410, 'resume_unavailable').reason, 'evicted');
    const at = await SseSubscription.open(broker.port, stream, { lastEventId: cursorOf(epoch, floor - 1) });
    await at.untilSeq(head);
    assert.deepEqual(at.seqs, range(floor, head));
    at.cut();
  });
});

describe('9.3 streams', () => {
  const broker = useBroker('--streams-max', '3');

  it('9.3 more streams than the limit are 507 too_many_streams; one that is deleted makes room', async () => {
    const streams = range(1, 3).map(() => freshStream('stream'));
    for (const stream of streams) await publish(broker.port, stream, 'one');
    const extra = freshStream('extra');
    for (const asked of [
      publishRequest(extra, 'one'),
      { method: 'PUT', path: `/v1/streams/${extra}`, body: '{}' },
      { path: `/v1/streams/${extra}`, headers: { Accept: 'text/event-stream' } },
    ]) {
      assertProblem(await request(broker.port, asked), 507, 'too_many_streams');
    }
    await deleteStream(broker.port, streams[0] ?? '');
    await publish(broker.port, extra, 'one');
    await deleteStream(broker.port, extra);
  });
});

describe('9.3 connections', () => {
  const broker = useBroker('--connections-max', '8');

  it('9.3 more connections in use than the limit are 503 too_many_connections and closed; the others live on', async () => {
    const stream = freshStream('crowded');
    const subscriptions = await Promise.all(range(1, 8).map(() => SseSubscription.open(broker.port, stream)));
    const refused = await HttpConnection.open(broker.port);
    const response = await refused.request(publishRequest(stream, 'never'));
    assertProblem(response, 503, 'too_many_connections');
    assert.match(response.header('retry-after') ?? '', /^[0-9]+$/);
    await withDeadline('the refused connection to be closed', refused.closed);
    for (const path of ['/healthz', '/readyz', '/metrics']) {
      assert.equal((await request(broker.port, { path })).status, 200, path);
    }
    subscriptions.pop()?.cut();
    await eventually('room for another', async () => {
      return (await request(broker.port, publishRequest(stream, 'event 1'))).status === 200;
    });
    for (const subscription of subscriptions) {
      await subscription.untilEvents(1);
      assert.deepEqual(subscription.seqs, [1]);
      subscription.cut();
    }
  });

  it('9.3 connections that have nothing under way do not count: silent ones, kept ones, and half a request', async () => {
    const stream = freshStream('silent');
    const idle = await Promise.all(range(1, 40).map(() => HttpConnection.open(broker.port)));
    for (const connection of idle.slice(0, 10)) connection.send('POST /v1/streams/x HTTP/1.1\r\nHost: ');
    for (const connection of idle.slice(10, 20)) await publish(connection, stream, 'kept');
    const subscription = await SseSubscription.open(broker.port, stream);
    await publish(broker.port, stream, 'last');
    await subscription.untilEvents(1);
    subscription.cut();
    for (const connection of idle) connection.destroy();
    await eventually('nothing to be in use but what asks', async () => {
      return total(await scrape(broker.port), METRIC.connectionsInUse) === 1;
    });
  });

  it('9.3 a WebSocket counts while it is open, and no longer', async () => {
    const sockets = await Promise.all(
      range(1, 8).map(() => LiveSocket.open(broker.port, freshStream('socket'))),
    );
    assertProblem(await request(broker.port, { path: '/v1/streams' }), 503, 'too_many_connections');
    for (const socket of sockets) socket.cut();
    await eventually('room for another', async () => {
      return (await request(broker.port, { path: '/v1/streams' })).status === 200;
    });
  });
});
