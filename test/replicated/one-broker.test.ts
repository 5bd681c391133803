import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { FilledStream } from '../durable/filled-stream.js';
import { cursorOf } from '../support/cursor.js';
import { eventually } from '../support/deadline.js';
import {
  assertProblem,
  closeStream,
  createStream,
  deleteStream,
  freshStream,
  MEDIA_TYPES,
  publish,
  publishLines,
  publishRequest,
  putStream,
  readAll,
  readPage,
  stateOf,
} from '../support/gapless-client.js';
import { request } from '../support/http.js';
import { NATS_SKIP, NatsServer } from '../support/nats-server.js';
import { answeredOf, keyRequest, producerRequest } from '../support/producer.js';
import { startBroker } from '../support/replicated-brokers.js';
import { SseSubscription } from '../support/sse-client.js';

describe('a broker whose log is in JetStream', { skip: NATS_SKIP }, () => {
  it('2.1, 3.3 publishes and reads, and has everything again after it was killed (I3, I4)', async (context) => {
    const nats = await NatsServer.start(context);
    const first = await startBroker(context, nats);
    const stream = freshStream('kept');
    const closed = freshStream('closed.with.dots');
    await createStream(first.port, stream, { retention: { events: 100 } });
    const published = await publishLines(first.port, stream, ['one', 'two', 'three']);
    await publish(first.port, stream, Buffer.from([0, 1, 254, 255]), MEDIA_TYPES.binary);
    await publish(first.port, stream, 'x'.repeat(1024 * 1024), MEDIA_TYPES.text);
    await publish(first.port, closed, 'last');
    await closeStream(first.port, closed);
    const before = await readAll(first.port, stream);
    await first.kill();
    const second = await startBroker(context, nats);
    const state = await stateOf(second.port, stream);
    assert.deepEqual({ epoch: state.epoch, head: state.head }, { epoch: published.epoch, head: 5 });
    assert.equal((await putStream(second.port, stream, { retention: { events: 100 } })).status, 200);
    assert.deepEqual(await readAll(second.port, stream), before);
    assert.equal((await readPage(second.port, closed)).header('gapless-closed'), 'true');
    const next = await publish(second.port, stream, 'next');
    assert.deepEqual({ epoch: next.epoch, first: next.first }, { epoch: published.epoch, first: 6 });
    assertProblem(await request(second.port, publishRequest(closed, 'more')), 409, 'stream_closed');

    await deleteStream(second.port, stream);
    assert.equal((await request(second.port, { path: `/v1/streams/${stream}` })).status, 404);
    const again = await publish(second.port, stream, 'of now');
    assert.notEqual(again.epoch, published.epoch);
    assert.deepEqual(
      (await readAll(second.port, stream)).map(({ data }) => data),
      ['of now'],
    );
  });

  it('3.4 a retry after the broker was killed is the publish of before', async (context) => {
    const nats = await NatsServer.start(context);
    const first = await startBroker(context, nats);
    const stream = freshStream('producer');
    const ofProducer = (seq: number) =>
      producerRequest({ stream, id: 'p', epoch: 1, seq, lines: [`${seq}.a`, `${seq}.b`] });
    for (const seq of [0, 1, 2]) answeredOf(await request(first.port, ofProducer(seq)));
    const keyed = answeredOf(await request(first.port, keyRequest(stream, 'key', 'once')));
    await first.kill();
    const second = await startBroker(context, nats);
    const again = answeredOf(await request(second.port, ofProducer(1)));
    assert.deepEqual({ ...again, epoch: '' }, { epoch: '', first: 3, last: 4, isDuplicate: true });
    assert.deepEqual(answeredOf(await request(second.port, keyRequest(stream, 'key', 'once'))), {
      ...keyed,
      isDuplicate: true,
    });
    assertProblem(await request(second.port, ofProducer(4)), 409, 'producer_gap');
    const next = answeredOf(await request(second.port, ofProducer(3)));
    assert.deepEqual({ ...next, epoch: '' }, { epoch: '', first: 8, last: 9, isDuplicate: false });
    assert.equal((await stateOf(second.port, stream)).head, 9);
  });

  it('4.1, 4.3 a resume below the ring comes from the log and goes over into the ring (I1, I2)', async (context) => {
    const nats = await NatsServer.start(context);
    const broker = await startBroker(context, nats, '--ring-bytes', '64KiB');
    const stream = await FilledStream.create(broker.port, { eventBytes: 100 });
    await stream.fill(10_000);
    const { floor, head } = await stateOf(broker.port, stream.name);
    assert.ok(floor > head / 2, `the ring holds ${floor}..${head}`);
    for (const seq of [0, 1, 499, 500, 501, 4321, floor - 2, floor - 1, floor, head - 1]) {
      const lastEventId = cursorOf(stream.epoch, seq);
      const subscription = await SseSubscription.open(broker.port, stream.name, { lastEventId });
      await subscription.untilSeq(head);
      stream.assertEvents(subscription.events, { first: seq + 1, last: head });
      subscription.cut();
    }
  });

  it('2.1, 4.4 retention moves the floor, and what is below it goes from the log (I2, I9)', async (context) => {
    const nats = await NatsServer.start(context);
    const broker = await startBroker(context, nats, '--ring-bytes', '4KiB');
    const byEvents = await FilledStream.create(broker.port, {
      eventBytes: 100,
      config: { retention: { events: 1000, bytes: 0 } },
    });
    const byBytes = await FilledStream.create(broker.port, {
      eventBytes: 100,
      config: { retention: { events: 0, bytes: 100_000 } },
    });
    await byEvents.fill(3000);
    await byBytes.fill(3000);
    for (const stream of [byEvents, byBytes]) {
      const logFloor = await eventually('the floor to move', async () => {
        const state = await stateOf(broker.port, stream.name);
        return state.logFloor !== null && state.logFloor > 1 ? state.logFloor : undefined;
      });
      assert.ok(logFloor <= 2001 && logFloor > 1000, `floor ${logFloor}`);
      const lastEventId = cursorOf(stream.epoch, logFloor - 1);
      const subscription = await SseSubscription.open(broker.port, stream.name, { lastEventId });
      await subscription.untilSeq(stream.head);
      stream.assertEvents(subscription.events, { first: logFloor, last: stream.head });
      subscription.cut();
      const below = await SseSubscription.ask(broker.port, stream.name, {
        lastEventId: cursorOf(stream.epoch, logFloor - 2),
      });
      assert.equal(assertProblem(await below.refusal(), 410, 'resume_unavailable').reason, 'evicted');
    }
  });
});
