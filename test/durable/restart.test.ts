import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { cursorOf, range, seqOf } from '../support/cursor.js';
import { DurableBroker } from '../support/durable-broker.js';
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
  readPage,
  type StreamState,
  stateOf,
} from '../support/gapless-client.js';
import { request } from '../support/http.js';
import { SseSubscription } from '../support/sse-client.js';

const ENDS: Readonly<Record<string, (broker: DurableBroker) => Promise<void>>> = {
  SIGTERM: (broker) => broker.restart(),
  SIGKILL: (broker) => broker.killAndStart(),
};

/** What of a state has to be the same afterwards. The ring's own positions are not: it begins empty. */
function lasting(state: StreamState): Partial<StreamState> {
  const { floor: _floor, bytes: _bytes, subscribers: _subscribers, ...rest } = state;
  return rest;
}

for (const [signal, again] of Object.entries(ENDS)) {
  describe(`a broker that ends by ${signal} and starts in the same directory`, () => {
    it('2.1, 2.2 streams come back with epoch, positions and configuration (I3, I9)', async (context) => {
      const broker = await DurableBroker.start(context);
      const { port } = broker;
      const configs = [
        {},
        { retention: { events: 100 } },
        { retention: { events: 7, bytes: 100_000, ageMs: 3_600_000 }, overflow: 'reject', ttlMs: 7_200_000 },
        { overflow: 'evict', ttlMs: 86_400_000 },
      ];
      const streams = configs.map((_config, index) => freshStream(`configured-${index}`));
      for (const [index, stream] of streams.entries()) {
        await createStream(port, stream, configs[index]);
        // The first has had no event yet.
        if (index > 0) await publishLines(port, stream, ['one', 'two', 'three'].slice(0, index));
      }
      const before = await Promise.all(streams.map((stream) => stateOf(port, stream)));
      await again(broker);
      for (const [index, stream] of streams.entries()) {
        const state = await stateOf(port, stream);
        assert.deepEqual(lasting(state), lasting(before[index] as StreamState));
        assert.equal((await putStream(port, stream, configs[index] ?? {})).status, 200);
        const other = await putStream(port, stream, { retention: { events: 12345 } });
        assertProblem(other, 409, 'config_conflict');
        const { epoch, first } = await publish(port, stream, 'next');
        assert.deepEqual({ epoch, first }, { epoch: state.epoch, first: state.head + 1 });
      }
      await broker.end();
    });

    it('3.1, 3.2, 4.3 events of every kind come back byte for byte (I3)', async (context) => {
      const broker = await DurableBroker.start(context);
      const { port } = broker;
      const stream = freshStream('bytes');
      await publish(port, stream, '');
      await publish(port, stream, 'two\r\nlines\rand a third');
      await publish(port, stream, 'typed', MEDIA_TYPES.text, { 'Gapless-Event': 'tick' });
      await publish(port, stream, Buffer.from([0, 1, 254, 255]), MEDIA_TYPES.binary);
      await publish(port, stream, 'äöü 🙂 \u2028', MEDIA_TYPES.text);
      await publish(port, stream, 'x'.repeat(1024 * 1024), MEDIA_TYPES.text);
      const batch = [{ type: 'a', data: { deep: [1, 2, null] } }, { data: ' leading' }, { data: 'id: 1' }];
      const { last } = await publish(port, stream, JSON.stringify(batch), MEDIA_TYPES.batch);
      const before = await framesOf(port, stream, last);
      const pageBefore = await readPage(port, stream);
      await again(broker);
      assert.equal(await framesOf(port, stream, last), before);
      assert.equal((await readPage(port, stream)).text, pageBefore.text);
      await broker.end();
    });

    it('2.3 closed streams stay closed, with all of their events', async (context) => {
      const broker = await DurableBroker.start(context);
      const { port } = broker;
      const [stream, empty] = [freshStream('closed'), freshStream('closed-empty')];
      await publishLines(port, stream, ['one', 'two']);
      await closeStream(port, stream);
      await createStream(port, empty);
      await closeStream(port, empty);
      await again(broker);
      assertProblem(await request(port, publishRequest(stream, 'three')), 409, 'stream_closed');
      assertProblem(await request(port, publishRequest(empty, 'one')), 409, 'stream_closed');
      const subscription = await SseSubscription.open(port, stream, { cursor: 'earliest' });
      assert.equal(await subscription.untilEnded(), 'end');
      assert.deepEqual(subscription.data.slice(0, -1), ['one', 'two']);
      assert.equal(subscription.events.at(-1)?.type, 'stream_closed');
      const atEnd = await SseSubscription.ask(port, stream, { lastEventId: subscription.lastEventId });
      assert.equal(atEnd.status, 204);
      await broker.end();
    });

    it('2.3 deleted streams stay deleted, and the same name has another epoch each time (I3)', async (context) => {
      const broker = await DurableBroker.start(context);
      const { port } = broker;
      const stream = freshStream('deleted');
      const epochs: string[] = [];
      for (const _life of range(1, 3)) {
        const { epoch } = await publishLines(port, stream, ['one', 'two', 'three']);
        epochs.push(epoch);
        await deleteStream(port, stream);
      }
      await again(broker);
      assert.equal((await request(port, { path: `/v1/streams/${stream}/state` })).status, 404);
      for (const _life of range(1, 2)) {
        const { epoch, first } = await publish(port, stream, 'anew');
        assert.equal(first, 1);
        epochs.push(epoch);
        for (const old of epochs.slice(0, -1)) {
          const refused = await readPage(port, stream, `cursor=${cursorOf(old, 1)}`);
          assert.equal(assertProblem(refused, 410, 'resume_unavailable').reason, 'epoch_changed');
        }
        await again(broker);
        assert.equal((await stateOf(port, stream)).epoch, epoch);
        await deleteStream(port, stream);
        await again(broker);
        assert.equal((await readPage(port, stream)).status, 404);
      }
      assert.equal(new Set(epochs).size, epochs.length, `an epoch came twice: ${epochs}`);
      await broker.end();
    });

    it('3.5, 4.1 a cursor and a head of before are good after, at every position (I2)', async (context) => {
      const broker = await DurableBroker.start(context);
      const { port } = broker;
      const stream = freshStream('cursors');
      const { epoch, last } = await publishLines(
        port,
        stream,
        range(1, 50).map((seq) => `event ${seq}`),
      );
      await again(broker);
      for (const seq of range(0, last)) {
        const subscription = await SseSubscription.open(port, stream, { lastEventId: cursorOf(epoch, seq) });
        await subscription.untilSeq(last);
        assert.deepEqual(subscription.seqs, range(seq + 1, last));
        subscription.cut();
      }
      const ahead = await readPage(port, stream, `cursor=${cursorOf(epoch, last + 1)}`);
      assert.equal(assertProblem(ahead, 410, 'resume_unavailable').reason, 'ahead_of_head');
      const asked = (seq: number) =>
        publishRequest(stream, 'next', MEDIA_TYPES.text, { 'Gapless-If-Head': cursorOf(epoch, seq) });
      assertProblem(await request(port, asked(last - 1)), 412, 'head_mismatch');
      assert.equal((await request(port, asked(last))).status, 200);
      await broker.end();
    });
  });
}

/** The event stream from the earliest event to `last`, as it goes over the wire, without what differs each time. */
async function framesOf(port: number, stream: string, last: number): Promise<string> {
  const subscription = await SseSubscription.open(port, stream, { cursor: 'earliest', keepText: true });
  await subscription.untilSeq(last);
  subscription.cut();
  assert.equal(seqOf(subscription.lastEventId), last);
  return subscription.text.replace(/^retry: \d+\n\n/, '');
}
