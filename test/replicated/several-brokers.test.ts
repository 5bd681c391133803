import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { jetstreamManager } from '@nats-io/jetstream';
import { connect } from '@nats-io/transport-node';
import { cursorOf, range } from '../support/cursor.js';
import { eventually } from '../support/deadline.js';
import {
  assertProblem,
  closeStream,
  createStream,
  deleteStream,
  freshStream,
  publish,
  publishRequest,
  putStream,
  readAll,
  stateOf,
} from '../support/gapless-client.js';
import { HttpConnection, request } from '../support/http.js';
import { namedOf } from '../support/named-subscriber.js';
import { NATS_SKIP, NatsServer } from '../support/nats-server.js';
import { answeredOf, keyRequest, producerRequest } from '../support/producer.js';
import { startBrokers } from '../support/replicated-brokers.js';
import { SseSubscription } from '../support/sse-client.js';

const WRITES = 60;

describe('brokers that share a log', { skip: NATS_SKIP }, () => {
  it('3.1, 4.1 publishers on each of them make one order, which every reader sees (I1, I3, I6)', async (context) => {
    const nats = await NatsServer.start(context);
    const brokers = await startBrokers(context, nats, 3);
    const stream = freshStream('shared');
    const { epoch } = await publish(brokers[0]?.port ?? 0, stream, 'first');
    const readers = await Promise.all(
      brokers.map(({ port }) => SseSubscription.open(port, stream, { lastEventId: cursorOf(epoch, 0) })),
    );
    const placed = new Map<number, string>([[1, 'first']]);
    await Promise.all(
      brokers.map(async ({ port }, index) => {
        const connection = await HttpConnection.open(port);
        let before = 0;
        for (const write of range(1, WRITES)) {
          const data = `${index}.${write}`;
          const { first } = await publish(connection, stream, data);
          assert.ok(first > before, 'I6');
          assert.equal(placed.has(first), false, 'I3: one place was given twice');
          placed.set(first, data);
          before = first;
        }
        connection.destroy();
      }),
    );
    const head = 1 + brokers.length * WRITES;
    for (const reader of readers) {
      await reader.untilSeq(head);
      assert.deepEqual(reader.seqs, range(1, head));
      assert.deepEqual(
        reader.data,
        range(1, head).map((seq) => placed.get(seq)),
      );
      reader.cut();
    }
  });

  it('2.1 to 2.4, 4.1 what one of them was told, all know', async (context) => {
    const nats = await NatsServer.start(context);
    const [a = 0, b = 0] = (await startBrokers(context, nats, 2)).map(({ port }) => port);
    for (const round of range(1, 20)) {
      const stream = freshStream(`known-${round}`);
      await createStream(a, stream, { retention: { events: 1000 } });
      const { epoch: known } = await stateOf(b, stream);
      assertProblem(await putStream(b, stream, { retention: { events: 2000 } }), 409, 'config_conflict');
      assert.equal((await putStream(b, stream, { retention: { events: 1000 } })).status, 200);
      const { epoch, last } = await publish(a, stream, 'x');
      assert.equal(epoch, known);
      assert.equal((await stateOf(b, stream)).head, last);
      const resumed = await SseSubscription.open(b, stream, { lastEventId: cursorOf(epoch, last) });
      const ifHead = { 'Gapless-If-Head': cursorOf(epoch, last) };
      await publish(b, stream, 'y', undefined, ifHead);
      await resumed.untilSeq(2);
      assertProblem(await request(b, publishRequest(stream, 'z', undefined, ifHead)), 412, 'head_mismatch');
      await publish(a, stream, 'z', undefined, { 'Gapless-If-Head': cursorOf(epoch, 2) });
      await closeStream(b, stream);
      assertProblem(await request(a, publishRequest(stream, 'more')), 409, 'stream_closed');
      assert.equal(await resumed.ended, 'end');
      await deleteStream(a, stream);
      // Until it hears of that, who has all of the closed stream is told that nothing more comes.
      const gone = await eventually('the deletion to be known', async () => {
        const asked = await SseSubscription.ask(b, stream, { lastEventId: cursorOf(epoch, 3) });
        return asked.status !== 204 && asked.refusal();
      });
      assert.equal(assertProblem(gone, 410, 'resume_unavailable').reason, 'epoch_changed');
    }
  });

  it('3.4 a publish is exactly once, whichever of them its retries go to', async (context) => {
    const nats = await NatsServer.start(context);
    const ports = (await startBrokers(context, nats, 3)).map(({ port }) => port);
    const stream = freshStream('once');
    for (const seq of range(0, 29)) {
      const asked = producerRequest({ stream, id: 'p', epoch: 0, seq, lines: [`${seq}`] });
      const key = keyRequest(stream, `k${seq}`, `key ${seq}`);
      // All at once, to all of them.
      const answers = await Promise.all(ports.flatMap((port) => [request(port, asked), request(port, key)]));
      const byProducer = answers.filter((_answer, index) => index % 2 === 0).map(answeredOf);
      const byKey = answers.filter((_answer, index) => index % 2 === 1).map(answeredOf);
      for (const same of [byProducer, byKey]) {
        assert.equal(new Set(same.map(({ first }) => first)).size, 1);
        assert.equal(same.filter(({ isDuplicate }) => !isDuplicate).length, 1);
      }
    }
    const events = await readAll(ports[1] ?? 0, stream);
    assert.equal(events.length, 60);
    assert.equal(new Set(events.map(({ data }) => data)).size, 60);
  });

  it('2.1 a stream that is only read stays while it is, and the readers are none of its named subscribers', async (context) => {
    const nats = await NatsServer.start(context);
    const [a, b] = (await startBrokers(context, nats, 2)).map(({ port }) => port) as [number, number];
    const stream = freshStream('read');
    await putStream(a, stream, { ttlMs: 2000 });
    const { epoch } = await publish(a, stream, 'kept');
    const reader = await SseSubscription.open(b, stream, { lastEventId: cursorOf(epoch, 0) });
    const connection = await connect({ servers: [`127.0.0.1:${nats.port}`] });
    context.after(() => connection.close());
    const { streams } = await jetstreamManager(connection, { checkAPI: false });
    const newest = (subject: string) => streams.getMessage('GAPLESS', { last_by_subj: subject });
    const own = `gapless.GAPLESS.${stream}`;
    const readers = `${own}.@readers`;
    const { seq } = await eventually(
      'the readers to be written down',
      async () => (await newest(readers)) ?? false,
    );
    await eventually('it to be written down again', async () => (await newest(readers))?.seq !== seq);
    assert.ok(((await newest(own))?.seq ?? seq) < seq, 'nothing was written among the events');
    for (const port of [a, b]) assert.deepEqual(await namedOf(port, stream), []);
    reader.cut();
    await eventually('it to be removed', async () => {
      const asked = await Promise.all(
        [a, b].map((port) => request(port, { path: `/v1/streams/${stream}/state` })),
      );
      return asked.every(({ status }) => status === 404);
    });
  });

  it('4.1 one that was stopped for a while catches up, and its readers miss nothing (I1, I2)', async (context) => {
    const nats = await NatsServer.start(context);
    const [first, second] = await startBrokers(context, nats, 2, '--ring-bytes', '16KiB');
    assert.ok(first !== undefined && second !== undefined);
    const stream = freshStream('stopped');
    const { epoch } = await publish(first.port, stream, 'x'.repeat(1000));
    const reader = await SseSubscription.open(second.port, stream, { lastEventId: cursorOf(epoch, 0) });
    await reader.untilSeq(1);
    await second.standStill();
    for (const _ of range(1, 150)) await publish(first.port, stream, 'x'.repeat(1000));
    second.signal('SIGCONT');
    await reader.untilSeq(151);
    assert.deepEqual(reader.seqs, range(1, 151));
    const { head } = await eventually('it to be in step', async () => {
      const state = await stateOf(second.port, stream);
      return state.head === 151 ? state : undefined;
    });
    assert.equal(head, 151);
    await publish(second.port, stream, 'more');
    await reader.untilSeq(152);
  });
});
