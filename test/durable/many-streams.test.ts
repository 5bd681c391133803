import assert from 'node:assert/strict';
import { it } from 'node:test';
import { range } from '../support/cursor.js';
import { DurableBroker } from '../support/durable-broker.js';
import {
  closeStream,
  deleteStream,
  type Published,
  publish,
  publishedOf,
  publishRequest,
  readAll,
  type StreamState,
} from '../support/gapless-client.js';
import { HttpConnection, request } from '../support/http.js';
import { scrape, total } from '../support/prometheus.js';
import { SseSubscription } from '../support/sse-client.js';

/** A hundred thousand say how long a start takes; it is told, and judged by nobody. */
const STREAMS = Number(process.env.MANY_STREAMS ?? 2000);
/** Publishing at a time, so that commits are shared. */
const CONNECTIONS = 50;
const ARENA_USED = 'gapless_arena_used_bytes';

it(`2.2 ${STREAMS} streams come back, in order and with their epochs, and cost no ring until they are published to`, async (context) => {
  const broker = await DurableBroker.start(context, '--threads', '2');
  const { port } = broker;
  const names = range(1, STREAMS).map((index) => `many-${String(index).padStart(6, '0')}`);
  const published = new Map<string, Published>();
  await Promise.all(
    range(0, CONNECTIONS - 1).map(async (worker) => {
      const own = names.filter((_name, index) => index % CONNECTIONS === worker);
      const connection = await HttpConnection.open(port);
      for (const name of own) {
        published.set(name, publishedOf(await connection.request(publishRequest(name, `of ${name}`))));
      }
      connection.destroy();
    }),
  );
  const [closed = '', deleted = '', touched = ''] = names;
  await closeStream(port, closed);
  await deleteStream(port, deleted);
  assert.ok(total(await scrape(port), ARENA_USED) > 0);

  for (const again of [() => broker.killAndStart(), () => broker.restart()]) {
    const startedAtMs = performance.now();
    await again();
    const seconds = ((performance.now() - startedAtMs) / 1000).toFixed(2);
    const mebibytes = Math.round((await broker.process.residentBytes()) / 2 ** 20);
    context.diagnostic(`again after ${seconds} s, with ${mebibytes} MiB resident`);
    const states = await listAll(port);
    assert.deepEqual(
      states.map(({ name }) => name),
      names.filter((name) => name !== deleted),
    );
    for (const { name, epoch, committed, head, closed: isClosed } of states) {
      const { epoch: expected, last } = published.get(name) as Published;
      assert.deepEqual([epoch, committed, head, isClosed], [expected, last, last, name === closed], name);
    }
    assert.equal(total(await scrape(port), 'gapless_streams'), STREAMS - 1);
    assert.equal(total(await scrape(port), ARENA_USED), 0, 'a stream that nobody touched has a ring');
  }

  // Reading it is no reason for a ring either: the log has it.
  assert.deepEqual(
    (await readAll(port, touched)).map(({ data }) => data),
    [`of ${touched}`],
  );
  const subscription = await SseSubscription.open(port, touched, { cursor: 'earliest' });
  await subscription.untilEvents(1);
  assert.equal(total(await scrape(port), ARENA_USED), 0);
  await publish(port, touched, 'more');
  await subscription.untilEvents(2);
  assert.deepEqual(subscription.data, [`of ${touched}`, 'more']);
  assert.ok(total(await scrape(port), ARENA_USED) > 0);
  subscription.cut();
  await broker.end();
});

async function listAll(port: number): Promise<(StreamState & { name: string; closed: boolean })[]> {
  const states: (StreamState & { name: string; closed: boolean })[] = [];
  for (let after = ''; ; ) {
    const response = await request(port, { path: `/v1/streams?limit=1000&after=${after}` });
    assert.equal(response.status, 200, response.text);
    const { streams, next } = response.json<{ streams: typeof states; next: string | null }>();
    states.push(...streams);
    if (next === null) return states;
    after = next;
  }
}
