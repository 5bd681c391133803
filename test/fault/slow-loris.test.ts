import assert from 'node:assert/strict';
import { it } from 'node:test';
import { setTimeout as delay } from 'node:timers/promises';
import { BrokerProcess } from '../support/broker-process.js';
import { range } from '../support/cursor.js';
import { eventually, withDeadline } from '../support/deadline.js';
import { freshStream, publish, publishRequest, stateOf } from '../support/gapless-client.js';
import { encodeRequest, HttpConnection, request } from '../support/http.js';
import { METRIC } from '../support/metric-names.js';
import { parseMetrics, scrape, total } from '../support/prometheus.js';
import { SseSubscription } from '../support/sse-client.js';

const EACH = 60;
const TRICKLE_MS = 500;
/** The library looks every few seconds; what is bounded is bounded by a few of those. */
const GIVEN_UP_MS = 60_000;
const DESCRIPTORS = 400;

it('9.3 requests that never end, sent a byte at a time, are given up, and meanwhile hold up no one (I10)', async (context) => {
  const broker = await BrokerProcess.start('--threads', '2');
  context.after(() => broker.isRunning && broker.kill());
  const { port } = broker;
  const stream = freshStream('calm');
  const { epoch } = await publish(port, stream, 'first');
  const subscription = await SseSubscription.open(port, stream, { cursor: 'earliest' });
  const publisher = await HttpConnection.open(port);
  const descriptors = await broker.descriptorCount();

  const publishBytes = encodeRequest(publishRequest(stream, 'x'.repeat(10_000)));
  const headEnd = publishBytes.indexOf('\r\n\r\n') + 4;
  const kinds: Readonly<Record<string, Buffer>> = {
    silent: Buffer.alloc(0),
    'a head': Buffer.from(`GET /v1/streams/${stream} HTTP/1.1\r\nHost: ${'h'.repeat(2000)}`),
    'a body': publishBytes.subarray(0, -1),
    'a chunked body': chunked(publishBytes.subarray(0, headEnd), 5000),
  };
  const opened = await Promise.all(
    Object.values(kinds).flatMap((bytes) => range(1, EACH).map(() => trickle(port, bytes))),
  );
  for (const round of range(2, 40)) {
    await publish(publisher, stream, `event ${round}`);
    await subscription.untilEvents(round);
  }
  const closed = Promise.all(opened.map((loris) => loris.closed));
  await withDeadline('all to be given up', closed, GIVEN_UP_MS);

  const state = await stateOf(port, stream);
  assert.deepEqual(
    { epoch: state.epoch, head: state.head },
    { epoch, head: 40 },
    'no part of a body was taken',
  );
  await publish(port, stream, 'last');
  await subscription.untilEvents(41);
  subscription.cut();
  publisher.destroy();
  await eventually('no connection to be left', async () => {
    return total(await scrape(port), METRIC.connections) <= 1;
  });
  await eventually('no descriptor to be left', async () => (await broker.descriptorCount()) <= descriptors);
  assert.deepEqual(await broker.stop(), { code: 0, signal: null });
  assert.deepEqual(broker.errors, []);
});

it('9.3 more silent connections than there are descriptors: subscribers and operators go on, and newcomers come in later (I10)', async (context) => {
  const flags = ['--heartbeat-interval-ms', '100ms'];
  const broker = await BrokerProcess.launch({ flags, descriptorsMax: DESCRIPTORS });
  context.after(() => broker.isRunning && broker.kill());
  const { port } = broker;
  const stream = freshStream('calm');
  await publish(port, stream, 'first');
  const subscription = await SseSubscription.open(port, stream, { cursor: 'earliest' });
  const operator = await HttpConnection.open(port);

  const silent = await Promise.all(range(1, DESCRIPTORS + 100).map(() => HttpConnection.open(port)));
  for (const _beat of range(1, 10)) {
    const { comments } = subscription;
    await subscription.until('another heartbeat', () => subscription.comments > comments);
    assert.equal((await operator.request({ path: '/healthz' })).status, 200);
  }
  const { text } = await operator.request({ path: '/metrics' });
  assert.ok(
    total(parseMetrics(text), METRIC.connectionsDropped) > 0,
    'none was closed for want of descriptors',
  );
  for (const connection of silent) connection.destroy();
  await eventually('newcomers to come in', () =>
    request(port, publishRequest(stream, 'last')).then(
      ({ status }) => status === 200,
      () => false,
    ),
  );
  await subscription.untilEvents(2);
  subscription.cut();
  operator.destroy();
  assert.deepEqual(await broker.stop(), { code: 0, signal: null });
  assert.deepEqual(broker.errors, []);
});

/** A connection that sends a byte now and then, for as long as the other side has it. */
async function trickle(port: number, bytes: Buffer): Promise<HttpConnection> {
  const connection = await HttpConnection.open(port);
  void (async () => {
    // The first half at once, so that each is where it wants to be.
    const half = bytes.length >> 1;
    if (half > 0) connection.send(bytes.subarray(0, half));
    for (let at = half; at < bytes.length && !connection.socket.destroyed; at++) {
      connection.send(bytes.subarray(at, at + 1));
      await delay(TRICKLE_MS, undefined, { ref: false });
    }
  })();
  return connection;
}

function chunked(head: Buffer, bytes: number): Buffer {
  const lines = head.toString('latin1').replace(/Content-Length: \d+/, 'Transfer-Encoding: chunked');
  return Buffer.from(`${lines}${bytes.toString(16)}\r\n${'x'.repeat(bytes - 1)}`, 'latin1');
}
