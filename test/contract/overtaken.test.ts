import assert from 'node:assert/strict';
import { it } from 'node:test';
import { describeOnEdges } from '../support/broker-process.js';
import { positionOf, range, seqOf } from '../support/cursor.js';
import { eventually } from '../support/deadline.js';
import {
  assertProblem,
  createStream,
  freshStream,
  type Problem,
  publishLines,
  stateOf,
} from '../support/gapless-client.js';
import { HttpConnection } from '../support/http.js';
import { SseSubscription, type SubscribeOptions } from '../support/sse-client.js';

const KIB = 1024;
const EVENT_BYTES = 32 * KIB;
const BATCH_EVENTS = 8;
/** Far more than the kernel's buffers of one connection take, so that the rest waits in the ring and is evicted there. */
const FLOOD_BATCHES = 120;

describeOnEdges('4.6 overtaken while connected', [], (broker) => {
  async function flood(stream: string): Promise<void> {
    const connection = await HttpConnection.open(broker.port);
    for (const batch of range(1, FLOOD_BATCHES)) {
      const lines = range(1, BATCH_EVENTS).map((line) => `${batch}/${line} `.padEnd(EVENT_BYTES, '.'));
      await publishLines(connection, stream, lines);
    }
    connection.destroy();
  }

  /** A subscriber that stalls before the first event, is overtaken by a flood, and then reads whatever comes. */
  async function overtaken(
    options: SubscribeOptions = {},
  ): Promise<{ stream: string; subscription: SseSubscription }> {
    const stream = freshStream('overtaken');
    await createStream(broker.port, stream, { retention: { bytes: 512 * KIB } });
    const subscription = await SseSubscription.open(broker.port, stream, options);
    await subscription.untilPrimed();
    subscription.stall();
    await flood(stream);
    subscription.unstall();
    return { stream, subscription };
  }

  it('4.6 the connection is cut without a proper end, and coming back with the old cursor is 410 (I2)', async () => {
    const { stream, subscription } = await overtaken();
    assert.equal(await subscription.untilEnded(), 'cut');
    const last = seqOf(subscription.lastEventId);
    const { floor, head } = await stateOf(broker.port, stream);
    assert.deepEqual(subscription.seqs, range(1, last));
    assert.ok(last + 1 < floor, `cut at ${last} although ${floor}..${head} is there`);
    assert.ok(subscription.events.every(({ type }) => type === 'message'));

    const back = await SseSubscription.ask(broker.port, stream, { lastEventId: subscription.lastEventId });
    const problem = assertProblem(await back.refusal(), 410, 'resume_unavailable');
    assert.deepEqual([problem.reason, problem.floor, problem.head], ['evicted', floor, head]);

    const line = await eventually('the line in the log', () =>
      broker.process.log.find((candidate) => candidate.msg === 'overtaken' && candidate.stream === stream),
    );
    assert.equal(line.reason, 'evicted');
    assert.ok(seqOf(String(line.cursor)) >= last && seqOf(String(line.cursor)) + 1 < Number(line.floor));
  });

  it('4.6 who asked for the event gets it, with the position it had reached, and then the end', async () => {
    const { stream, subscription } = await overtaken({ query: 'on_unavailable=event' });
    assert.equal(await subscription.untilEnded(), 'end');
    const refusal = subscription.events.at(-1);
    assert.equal(refusal?.type, 'resume_unavailable');
    const problem = JSON.parse(refusal?.data ?? '') as Problem;
    const before = subscription.events.slice(0, -1);
    const last = before.length === 0 ? 0 : seqOf(before.at(-1)?.id ?? '');
    assert.deepEqual(
      before.map(({ id }) => seqOf(id)),
      range(1, last),
    );
    assert.equal(problem.reason, 'evicted');
    assert.equal(positionOf(problem.cursor ?? '').seq, last);
    assert.ok((problem.floor ?? 0) > last + 1);
    assert.equal(seqOf(subscription.lastEventId), problem.head);

    // Where it may go on was true when it was told; a flood that went on may have passed that too.
    const { floor, head } = await stateOf(broker.port, stream);
    if ((problem.head ?? 0) + 1 < floor) {
      const late = await SseSubscription.ask(broker.port, stream, { lastEventId: subscription.lastEventId });
      assertProblem(await late.refusal(), 410, 'resume_unavailable');
      return;
    }
    await publishLines(broker.port, stream, ['after']);
    const back = await SseSubscription.open(broker.port, stream, { lastEventId: subscription.lastEventId });
    await back.untilSeq(head + 1);
    assert.deepEqual(back.seqs, range((problem.head ?? 0) + 1, head + 1));
    back.cut();
  });

  it('4.6 a neighbour that reads gets every event although another was overtaken (I10)', async () => {
    const stream = freshStream('neighbour');
    await createStream(broker.port, stream, { retention: { bytes: 512 * KIB } });
    const stalled = await SseSubscription.open(broker.port, stream);
    const healthy = await SseSubscription.open(broker.port, stream, { keepEvents: false });
    await Promise.all([stalled.untilPrimed(), healthy.untilPrimed()]);
    stalled.stall();
    const connection = await HttpConnection.open(broker.port);
    for (const batch of range(1, FLOOD_BATCHES)) {
      const lines = range(1, BATCH_EVENTS).map((line) => `${batch}/${line} `.padEnd(EVENT_BYTES, '.'));
      const { last } = await publishLines(connection, stream, lines);
      await healthy.untilSeq(last);
      assert.equal(healthy.eventCount, last);
    }
    connection.destroy();
    healthy.cut();
    stalled.cut();
  });
});
