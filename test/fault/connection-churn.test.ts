import assert from 'node:assert/strict';
import { it } from 'node:test';
import { describeOnEdges } from '../support/broker-process.js';
import { range } from '../support/cursor.js';
import { eventually } from '../support/deadline.js';
import {
  freshStream,
  MEDIA_TYPES,
  publish,
  publishLines,
  publishRequest,
  stateOf,
} from '../support/gapless-client.js';
import { encodeRequest, HttpConnection } from '../support/http.js';
import { METRIC } from '../support/metric-names.js';
import { type Prng, seededPrng } from '../support/prng.js';
import { scrape, total } from '../support/prometheus.js';

const CONNECTIONS = 5_000;
const PARALLEL = 100;
/** So many first, after which the process has grown to what it needs for them. */
const WARM_UP = 2_000;
/** Some kilobytes for each of the others would be seen; less is lost in what the collector has not taken yet. */
const GROWTH_BYTES_MAX = 24 * 1024 * 1024;
/** The connection that asks counts itself. */
const OWN_CONNECTIONS = 1;
/** Descriptors that a process opens lazily and keeps, such as one more epoll or pipe. */
const DESCRIPTOR_SLACK = 8;

describeOnEdges('5000 connections that open and drop', [], (broker) => {
  it('leave no descriptor, no memory, no subscriber and no connection behind, in whatever state they drop', async (context) => {
    const prng = seededPrng(context);
    const stream = freshStream('dropped');
    await publishLines(
      broker.port,
      stream,
      range(1, 200).map((seq) => `event ${seq} `.padEnd(1_000, '.')),
    );
    await eventually('a quiet broker', async () => {
      return total(await scrape(broker.port), METRIC.connections) <= OWN_CONNECTIONS;
    });
    const descriptorsBefore = await broker.process.descriptorCount();

    let warmBytes = 0;
    for (let opened = 0; opened < CONNECTIONS; opened += PARALLEL) {
      if (opened === WARM_UP) warmBytes = await broker.process.residentBytes();
      const connections = await Promise.all(range(1, PARALLEL).map(() => HttpConnection.open(broker.port)));
      await Promise.all(connections.map((connection) => dropSomehow(connection, stream, prng)));
      if (opened % 500 === 0) await publish(broker.port, stream, 'meanwhile');
    }

    await eventually('the gauges to return', async () => {
      const families = await scrape(broker.port);
      return (
        total(families, METRIC.connections) <= OWN_CONNECTIONS &&
        total(families, METRIC.connectionsInUse) === OWN_CONNECTIONS &&
        total(families, METRIC.subscribers) === 0
      );
    });
    assert.equal((await stateOf(broker.port, stream)).subscribers, 0);
    const grownBytes = (await broker.process.residentBytes()) - warmBytes;
    context.diagnostic(`${Math.round(grownBytes / 1024)} KiB more than after the first ${WARM_UP}`);
    assert.ok(grownBytes < GROWTH_BYTES_MAX, `it has grown by ${grownBytes} bytes`);
    await eventually('the descriptors to return', async () => {
      return (await broker.process.descriptorCount()) <= descriptorsBefore + DESCRIPTOR_SLACK;
    });
  });
});

/** Drops before, within or after a request, politely or not. */
async function dropSomehow(connection: HttpConnection, stream: string, prng: Prng): Promise<void> {
  const subscribe = {
    path: `/v1/streams/${stream}?cursor=earliest`,
    headers: { Accept: 'text/event-stream' },
  };
  const poll = { path: `/v1/streams/${stream}?cursor=latest&wait=30`, headers: { Accept: MEDIA_TYPES.json } };
  const asked = encodeRequest(prng.pick([subscribe, poll, publishRequest(stream, 'x'.repeat(500))]));
  const bytes = prng.chance(0.3) ? asked.subarray(0, prng.below(asked.length)) : asked;
  if (bytes.length > 0) connection.send(bytes);
  if (prng.chance(0.5)) {
    const firstBytes = new Promise<void>((resolve) => connection.socket.once('data', () => resolve()));
    const isWhole = bytes.length === asked.length && !asked.includes('wait=30');
    if (isWhole) await Promise.race([firstBytes, connection.closed]);
  }
  connection.destroy({ reset: prng.chance(0.5) });
  await connection.closed;
}
