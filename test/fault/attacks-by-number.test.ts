import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { asMallory, asOperator, mallory, useAttackedBroker } from '../support/attacked-broker.js';
import { range } from '../support/cursor.js';
import { eventually } from '../support/deadline.js';
import { assertProblem, publish } from '../support/gapless-client.js';
import { encodeRequest, HttpConnection, request } from '../support/http.js';
import { METRIC } from '../support/metric-names.js';
import { type Family, parseMetrics, total } from '../support/prometheus.js';
import { SseSubscription } from '../support/sse-client.js';

const HALF_OPEN = 5_000;
const PARALLEL = 250;

async function metricsOf(port: number): Promise<Map<string, Family>> {
  return parseMetrics((await request(port, { path: '/metrics', headers: asOperator })).text);
}

/** So many connections, each with these bytes and nothing more. */
async function openMany(
  port: number,
  count: number,
  bytesOf: (index: number) => string,
): Promise<HttpConnection[]> {
  const opened: HttpConnection[] = [];
  while (opened.length < count) {
    const some = await Promise.all(range(1, PARALLEL).map(() => HttpConnection.open(port)));
    for (const connection of some) {
      const bytes = bytesOf(opened.length);
      if (bytes !== '') connection.send(bytes);
      opened.push(connection);
    }
  }
  return opened;
}

describe('attacks by number of connections', () => {
  const broker = useAttackedBroker('--threads', '2');

  it('5000 half-open requests: nobody else notices, and their memory and descriptors come back', async () => {
    const { port } = broker;
    const descriptors = await broker.process.descriptorCount();
    const halves = [
      '',
      'GET /v1/streams/own HTTP/1.1\r\nHost: ',
      `POST /v1/streams/own HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer ${mallory.key}\r\nContent-Length: 1000\r\n\r\nhalf`,
      'POST /v1/streams/own HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\nfff\r\nhalf',
    ];
    const halfOpen = await openMany(port, HALF_OPEN, (index) => halves[index % halves.length] as string);
    // Before the library gives up the first of them, which it does soon.
    await eventually('most of them to be open at a time', async () => {
      return total(await metricsOf(port), METRIC.connections) > HALF_OPEN / 2;
    });
    const subscription = await SseSubscription.open(port, 'beside', { headers: asOperator });
    for (const count of range(1, 50)) {
      await publish(port, 'beside', `event ${count}`, undefined, asOperator);
      await subscription.untilEvents(count);
    }
    subscription.cut();
    for (const connection of halfOpen) connection.destroy();
    await eventually('the gauges to return', async () => {
      const families = await metricsOf(port);
      return total(families, METRIC.connections) <= 3 && total(families, METRIC.connectionsInUse) <= 2;
    });
    await eventually('the descriptors to return', async () => {
      return (await broker.process.descriptorCount()) <= descriptors + 8;
    });
    const state = await request(port, { path: '/v1/streams/own/state', headers: asOperator });
    assert.equal(state.json().head, 1, 'no half of a body was appended');
  });
});

describe('attacks on the limit of connections', () => {
  const broker = useAttackedBroker('--connections-max', '12');

  it('250 silent connections, or kept after a 401, or with half a request: others come in', async () => {
    const unauthorized = encodeRequest({ path: '/v1/streams/own' }).toString();
    const ways = ['', unauthorized, 'PUT /'];
    const idle = await openMany(broker.port, PARALLEL, (index) => ways[index % ways.length] as string);
    const subscription = await SseSubscription.open(broker.port, 'beside', { headers: asOperator });
    await publish(broker.port, 'beside', 'event', undefined, asOperator);
    await subscription.untilEvents(1);
    subscription.cut();
    for (const connection of idle) connection.destroy();
  });
});

describe('attacks by coming back', () => {
  const ADDRESSES = { attacker: '192.0.2.1', other: '192.0.2.2' };
  const broker = useAttackedBroker(
    ...['--address-replay-bytes-max', '1MiB', '--trusted-proxies', '127.0.0.0/8'],
  );

  it('everything read again in a loop: 429 replay_limited, and who comes from elsewhere is served', async () => {
    const lines = range(1, 1000).map((line) => `${line} `.padEnd(1000, '.'));
    const publisher = await HttpConnection.open(broker.port);
    for (const at of range(0, 9)) {
      const body = lines.slice(100 * at, 100 * at + 100).join('\n');
      await publish(publisher, 'own-long', body, 'application/x-ndjson', asMallory);
    }
    publisher.destroy();
    const comeBack = (address: string) =>
      SseSubscription.ask(broker.port, 'own-long', {
        cursor: 'earliest',
        headers: { ...asMallory, 'X-Forwarded-For': address },
        keepEvents: false,
      });
    let served = 0;
    for (;;) {
      const subscription = await comeBack(ADDRESSES.attacker);
      if (subscription.status !== 200) {
        assertProblem(await subscription.refusal(), 429, 'replay_limited');
        break;
      }
      subscription.cut();
      assert.ok(++served <= 8, 'it is served for ever');
    }
    const other = await comeBack(ADDRESSES.other);
    await other.untilEvents(1000);
    other.cut();
    const live = await SseSubscription.open(broker.port, 'own-long', {
      headers: { ...asMallory, 'X-Forwarded-For': ADDRESSES.attacker },
    });
    await live.untilPrimed();
    live.cut();
  });
});
