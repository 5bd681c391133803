import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { jetstreamManager } from '@nats-io/jetstream';
import { connect } from '@nats-io/transport-node';
import { range } from '../support/cursor.js';
import { eventually } from '../support/deadline.js';
import {
  assertProblem,
  deleteStream,
  freshStream,
  publishRequest,
  readAll,
} from '../support/gapless-client.js';
import { type HttpResponse, request } from '../support/http.js';
import { NATS_SKIP, NatsServer } from '../support/nats-server.js';
import { keyRequest } from '../support/producer.js';
import { scrape, total } from '../support/prometheus.js';
import { startBroker } from '../support/replicated-brokers.js';

const LIMIT_BYTES = 1024 ** 2;
const EVENT_BYTES = 20_000;
const CAPACITY = 'gapless_log_capacity_bytes';

/** Servers on a busy machine may leave a broker without an answer for some seconds: the same is asked again. */
function untilAnswered(port: number, stream: string, data: string): Promise<HttpResponse> {
  const asked = keyRequest(stream, data.slice(0, 20), data);
  return eventually('an answer', async () => {
    const response = await request(port, asked);
    return response.status !== 503 && response;
  });
}

describe('a log that has reached its limit', { skip: NATS_SKIP }, () => {
  for (const replicas of [1, 3]) {
    it(`3.6, 8 refuses publishes and loses nothing, until what it has goes, with ${replicas} replicas (I3, I4)`, async (context) => {
      const servers =
        replicas === 1 ? [await NatsServer.start(context)] : await NatsServer.startCluster(context, replicas);
      const url = servers.map((server) => server.url).join(',');
      const broker = await startBroker(
        context,
        { url },
        ...['--log-replicas', String(replicas), '--log-bytes-max', `${LIMIT_BYTES}`],
      );
      const { port } = broker;
      const [small, large] = [freshStream('small'), freshStream('large')];
      assert.equal((await untilAnswered(port, small, 'before')).status, 200);
      const taken: string[] = [];
      for (;;) {
        const data = `${taken.length}`.padEnd(EVENT_BYTES, 'x');
        const response = await untilAnswered(port, large, data);
        if (response.status !== 200) {
          assertProblem(response, 507, 'log_full');
          break;
        }
        taken.push(data);
        assert.ok(taken.length < (2 * LIMIT_BYTES) / EVENT_BYTES, 'a limit that nobody keeps');
      }
      assert.ok(taken.length > LIMIT_BYTES / EVENT_BYTES / 2, `${taken.length} events`);
      assert.deepEqual(
        (await readAll(port, large)).map(({ data }) => data),
        taken,
      );
      await eventually('the metrics to say so', async () => {
        const metrics = await scrape(port);
        return (
          total(metrics, 'gapless_log_fault') === 1 &&
          total(metrics, CAPACITY) === LIMIT_BYTES &&
          total(metrics, 'gapless_log_size_bytes') > LIMIT_BYTES / 2 &&
          total(metrics, 'gapless_log_kept_bytes') > LIMIT_BYTES / 2
        );
      });
      assertProblem(await untilAnswered(port, small, 'refused'), 507, 'log_full');

      await deleteStream(port, large);
      await eventually('publishes to be taken again', async () => {
        return (await untilAnswered(port, small, 'after')).status === 200;
      });
      assert.deepEqual(
        (await readAll(port, small)).map(({ data }) => data),
        ['before', 'after'],
      );
    });
  }

  it('a limit below what it has is not set, and nothing goes for it (I2)', async (context) => {
    const nats = await NatsServer.start(context);
    const first = await startBroker(context, nats, '--log-bytes-max', '4MiB');
    const stream = freshStream('more');
    const taken = range(1, 30).map((n) => `${n}`.padEnd(100_000, 'x'));
    for (const data of taken) assert.equal((await untilAnswered(first.port, stream, data)).status, 200);
    const second = await startBroker(context, nats, '--log-bytes-max', '2MiB');
    await second.until('logBytesMax is not set: the log has more');
    for (const { port } of [first, second]) {
      assert.deepEqual(
        (await readAll(port, stream)).map(({ data }) => data),
        taken,
      );
      await eventually('it to know', async () => total(await scrape(port), CAPACITY) === 4 * 1024 ** 2);
    }
  });

  it('a limit that is set anew is that of the log from then on', async (context) => {
    const nats = await NatsServer.start(context);
    const first = await startBroker(context, nats, '--log-bytes-max', '1MiB');
    await eventually('it to know', async () => total(await scrape(first.port), CAPACITY) === 1024 ** 2);
    const second = await startBroker(context, nats, '--log-bytes-max', '2MiB');
    const third = await startBroker(context, nats);
    for (const { port } of [first, second, third]) {
      await eventually('all to know', async () => total(await scrape(port), CAPACITY) === 2 * 1024 ** 2);
    }
    await second.stop();
    await nats.kill();
    await nats.startAgain();
    // Who comes back to the log was not started anew.
    for (const { port } of [third, first]) {
      await eventually('it to be back', async () => {
        const { status } = await request(port, publishRequest(freshStream('back'), 'x'));
        return status === 200;
      });
    }
    const connection = await connect({ servers: [`127.0.0.1:${nats.port}`] });
    const { streams } = await jetstreamManager(connection, { checkAPI: false });
    assert.equal((await streams.info('GAPLESS')).config.max_bytes, 2 * 1024 ** 2);
    await connection.close();
  });
});
