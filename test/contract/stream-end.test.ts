import assert from 'node:assert/strict';
import { it } from 'node:test';
import { describeOnEdges } from '../support/broker-process.js';
import { cursorOf, range, seqOf } from '../support/cursor.js';
import {
  assertProblem,
  closeStream,
  createStream,
  deleteStream,
  freshStream,
  publish,
  publishLines,
  publishRequest,
  stateOf,
} from '../support/gapless-client.js';
import { HttpConnection } from '../support/http.js';
import { SseSubscription } from '../support/sse-client.js';

const SUBSCRIBERS = 20;

describeOnEdges('4.7 the end of a stream', [], (broker) => {
  function openMany(stream: string, count = SUBSCRIBERS): Promise<SseSubscription[]> {
    return Promise.all(
      range(1, count).map(() => SseSubscription.open(broker.port, stream, { cursor: 'earliest' })),
    );
  }

  it('4.7 every subscriber of a closed stream gets all events, then stream_closed without an id, then the end', async () => {
    const stream = freshStream('closed');
    const { epoch } = await publishLines(broker.port, stream, ['one', 'two']);
    const subscriptions = await openMany(stream);
    await publish(broker.port, stream, 'three');
    await closeStream(broker.port, stream);
    for (const subscription of subscriptions) {
      assert.equal(await subscription.untilEnded(), 'end');
      assert.deepEqual(subscription.data.slice(0, -1), ['one', 'two', 'three']);
      const closing = subscription.events.at(-1);
      assert.equal(closing?.type, 'stream_closed');
      assert.equal(closing?.carriesId, false);
      assert.deepEqual(JSON.parse(closing?.data ?? ''), { cursor: cursorOf(epoch, 3) });
      assert.equal(subscription.lastEventId, cursorOf(epoch, 3));
    }
  });

  it('4.7 who comes later gets the rest, stream_closed and the end, from every cursor', async () => {
    const stream = freshStream('closed-resume');
    const { epoch } = await publishLines(broker.port, stream, range(1, 5).map(String));
    await closeStream(broker.port, stream);
    for (const seq of range(0, 4)) {
      const subscription = await SseSubscription.open(broker.port, stream, {
        lastEventId: cursorOf(epoch, seq),
      });
      assert.equal(await subscription.untilEnded(), 'end');
      assert.deepEqual(subscription.seqs, range(seq + 1, 5));
      assert.equal(subscription.events.at(-1)?.type, 'stream_closed');
    }
  });

  it('4.7 with the cursor at the end of a closed stream it is 204, also where it never had an event', async () => {
    const stream = freshStream('end');
    const { epoch } = await publishLines(broker.port, stream, ['one', 'two']);
    await closeStream(broker.port, stream);
    const empty = freshStream('end');
    await createStream(broker.port, empty);
    await closeStream(broker.port, empty);
    const { epoch: emptyEpoch } = await stateOf(broker.port, empty);
    for (const [name, cursor] of [
      [stream, cursorOf(epoch, 2)],
      [empty, cursorOf(emptyEpoch, 0)],
    ] as const) {
      for (const options of [{ lastEventId: cursor }, { cursor }]) {
        const response = await (await SseSubscription.ask(broker.port, name, options)).refusal();
        assert.equal(response.status, 204);
        assert.equal(response.body.length, 0);
      }
    }
  });

  it('4.7 a cursor that cannot be resumed is refused on a closed stream too', async () => {
    const stream = freshStream('closed-refusal');
    const { epoch } = await publish(broker.port, stream, 'one');
    await closeStream(broker.port, stream);
    const ahead = await SseSubscription.ask(broker.port, stream, { lastEventId: cursorOf(epoch, 2) });
    assert.equal(assertProblem(await ahead.refusal(), 410, 'resume_unavailable').reason, 'ahead_of_head');
    const other = await SseSubscription.ask(broker.port, stream, { lastEventId: cursorOf('zzzzzzzzzz', 1) });
    assert.equal(assertProblem(await other.refusal(), 410, 'resume_unavailable').reason, 'epoch_changed');
  });

  it('4.7 every subscriber of a deleted stream gets stream_deleted, then the end', async () => {
    const stream = freshStream('deleted');
    await publishLines(broker.port, stream, ['one', 'two']);
    const subscriptions = await openMany(stream);
    await Promise.all(subscriptions.map((subscription) => subscription.untilEvents(2)));
    await deleteStream(broker.port, stream);
    for (const subscription of subscriptions) {
      assert.equal(await subscription.untilEnded(), 'end');
      assert.deepEqual(
        subscription.events.map(({ type }) => type),
        ['message', 'message', 'stream_deleted'],
      );
    }
  });

  it('4.7 a name deleted and made again at once sends nothing of the new epoch to the old subscribers (I3)', async () => {
    for (let round = 0; round < 20; round++) {
      const stream = freshStream('replaced');
      const { epoch } = await publish(broker.port, stream, 'old');
      const subscriptions = await openMany(stream, 6);
      await deleteStream(broker.port, stream);
      await publish(broker.port, stream, 'new');
      for (const subscription of subscriptions) {
        assert.equal(await subscription.untilEnded(), 'end');
        assert.ok(!subscription.data.includes('new'));
        assert.equal(subscription.events.at(-1)?.type, 'stream_deleted');
        assert.ok(subscription.lastEventId.startsWith(epoch));
      }
    }
  });

  it('4.7 of publishers that race with the close, every acknowledged event comes before stream_closed and no other (I4)', async () => {
    for (let round = 0; round < 10; round++) {
      const stream = freshStream('close-race');
      await publish(broker.port, stream, 'event 0');
      const subscriptions = await openMany(stream, 8);
      const acked: string[] = ['event 0'];
      const publishers = range(1, 8).map(async (publisher) => {
        const connection = await HttpConnection.open(broker.port);
        for (let count = 1; ; count++) {
          const data = `publisher ${publisher} event ${count}`;
          const response = await connection.request(publishRequest(stream, data));
          if (response.status !== 200) {
            assertProblem(response, 409, 'stream_closed');
            connection.destroy();
            return;
          }
          acked.push(data);
        }
      });
      await subscriptions[0]?.untilEvents(50);
      await closeStream(broker.port, stream);
      await Promise.all(publishers);
      const { head } = await stateOf(broker.port, stream);
      assert.equal(head, acked.length);
      for (const subscription of subscriptions) {
        assert.equal(await subscription.untilEnded(), 'end');
        assert.deepEqual(subscription.seqs, range(1, head));
        assert.deepEqual(new Set(subscription.data.slice(0, -1)), new Set(acked));
        assert.equal(subscription.events.at(-1)?.type, 'stream_closed');
      }
    }
  });

  it('4.7 a subscriber that had stalled when its stream was deleted gets no hole before stream_deleted', async () => {
    const stream = freshStream('stalled');
    await createStream(broker.port, stream, { retention: { bytes: 32 * 1024 * 1024 } });
    const subscription = await SseSubscription.open(broker.port, stream);
    await subscription.untilPrimed();
    subscription.stall();
    for (const batch of range(1, 100)) {
      await publishLines(
        broker.port,
        stream,
        range(1, 4).map((line) => `${batch}/${line} `.padEnd(50_000, '.')),
      );
    }
    await deleteStream(broker.port, stream);
    subscription.unstall();
    assert.equal(await subscription.untilEnded(), 'end');
    const last = subscription.events.filter(({ type }) => type === 'message').at(-1);
    assert.deepEqual(subscription.seqs.slice(0, seqOf(last?.id ?? '')), range(1, seqOf(last?.id ?? '')));
    assert.equal(subscription.events.at(-1)?.type, 'stream_deleted');
  });
});
