import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { jetstreamManager } from '@nats-io/jetstream';
import { connect } from '@nats-io/transport-node';
import { range } from '../support/cursor.js';
import { eventually } from '../support/deadline.js';
import {
  assertProblem,
  freshStream,
  MEDIA_TYPES,
  publishRequest,
  readAll,
} from '../support/gapless-client.js';
import { request } from '../support/http.js';
import { NATS_SKIP, NatsServer } from '../support/nats-server.js';
import { keyRequest } from '../support/producer.js';
import { startBroker } from '../support/replicated-brokers.js';

const PUBLISHES = 40;
const EVENT_BYTES = 20_000;

describe('NATS servers that take small messages', { skip: NATS_SKIP }, () => {
  it('6.1, 8 publishes that come at once are as many entries as they need, and what fits no message is refused', async (context) => {
    const nats = await NatsServer.start(context, 'max_payload: 131072');
    const { port } = await startBroker(context, nats);
    const stream = freshStream('small');
    const sent = range(1, PUBLISHES).map((n) => `${n}`.padEnd(EVENT_BYTES, 'x'));
    const answers = await Promise.all(
      sent.map((data, key) => request(port, keyRequest(stream, `${key}`, data))),
    );
    assert.deepEqual(
      answers.map(({ status, text }) => (status === 200 ? 200 : text)),
      answers.map(() => 200),
    );
    const large = await request(port, publishRequest(stream, 'x'.repeat(100_000), MEDIA_TYPES.text));
    assertProblem(large, 413, 'event_too_large');
    assert.deepEqual((await readAll(port, stream)).map(({ data }) => data).sort(), sent.sort());
  });

  it('8 a limit that somebody has given the JetStream stream is kept as well', async (context) => {
    const nats = await NatsServer.start(context);
    const { port } = await startBroker(context, nats);
    const connection = await connect({ servers: [`127.0.0.1:${nats.port}`] });
    const { streams } = await jetstreamManager(connection, { checkAPI: false });
    await streams.update('GAPLESS', { max_msg_size: 131_072 });
    await connection.close();
    const stream = freshStream('limited');
    const answered = async (bytes: number): Promise<number> =>
      (await request(port, publishRequest(stream, 'x'.repeat(bytes), MEDIA_TYPES.text))).status;
    await eventually('it to have heard of it', async () => (await answered(200_000)) === 413);
    // Its log may have failed by what was too large, for a moment.
    await eventually('what is small enough to be taken', async () => (await answered(EVENT_BYTES)) === 200);
  });

  it('a broker does not start where messages have no room for events, and says why', async (context) => {
    const nats = await NatsServer.start(context, 'max_payload: 65536');
    await assert.rejects(startBroker(context, nats), /cannot start: .*max_payload/);
  });
});
