import assert from 'node:assert/strict';
import { it } from 'node:test';
import { describeOnEdges } from '../support/broker-process.js';
import { cursorOf, range, seqOf } from '../support/cursor.js';
import {
  assertProblem,
  createStream,
  freshStream,
  MEDIA_TYPES,
  publish,
  stateOf,
} from '../support/gapless-client.js';
import { SseSubscription } from '../support/sse-client.js';

const HEARTBEAT_INTERVAL_MS = 50;

describeOnEdges('4.9 types', ['--heartbeat-interval-ms', String(HEARTBEAT_INTERVAL_MS)], (broker) => {
  /** Types a, b, c and none in turn: event n has the type of n modulo 4. */
  const TYPES = ['message', 'a', 'b', 'c'];

  async function filled(count: number): Promise<{ stream: string; epoch: string }> {
    const stream = freshStream('types');
    await createStream(broker.port, stream);
    for (const seq of range(1, count)) await publishTyped(stream, seq);
    return { stream, epoch: (await stateOf(broker.port, stream)).epoch };
  }

  function publishTyped(stream: string, seq: number): Promise<unknown> {
    const batch = [{ type: TYPES[seq % 4], data: `event ${seq}` }];
    return publish(broker.port, stream, JSON.stringify(batch), MEDIA_TYPES.batch);
  }

  function expectedSeqs(first: number, last: number, types: readonly string[]): number[] {
    return range(first, last).filter((seq) => types.includes(TYPES[seq % 4] ?? ''));
  }

  it('4.9 only the named types come, in a replay and live', async () => {
    const { stream } = await filled(20);
    for (const types of [
      ['a'],
      ['a', 'b'],
      ['message'],
      ['c', 'message'],
      ['a', 'b', 'c', 'message'],
      ['unheard-of'],
    ]) {
      const query = `types=${types.join(',')}`;
      const subscription = await SseSubscription.open(broker.port, stream, { cursor: 'earliest', query });
      const { head } = await stateOf(broker.port, stream);
      for (const seq of range(head + 1, head + 8)) await publishTyped(stream, seq);
      await subscription.untilSeq(head + 8);
      assert.deepEqual(subscription.seqs, expectedSeqs(1, head + 8, types), query);
      for (const { id, data } of subscription.events) assert.equal(data, `event ${seqOf(id)}`);
      subscription.cut();
    }
  });

  it('4.9 the cursor advances over what is left out, with id-only frames', async () => {
    const { stream, epoch } = await filled(0);
    const subscription = await SseSubscription.open(broker.port, stream, { query: 'types=b' });
    await subscription.untilPrimed();
    for (const seq of [4, 8, 12]) await publishTyped(stream, seq);
    await subscription.untilSeq(3);
    assert.equal(subscription.eventCount, 0);
    assert.equal(subscription.lastEventId, cursorOf(epoch, 3));
    subscription.cut();
  });

  it('4.9 the id never runs ahead of a wanted event: resuming from any of them misses none', async () => {
    const { stream, epoch } = await filled(40);
    const all = expectedSeqs(1, 40, ['a', 'c']);
    for (const seq of range(0, 40)) {
      const options = { lastEventId: cursorOf(epoch, seq), query: 'types=a,c' };
      const subscription = await SseSubscription.open(broker.port, stream, options);
      await subscription.untilSeq(40);
      assert.deepEqual(
        subscription.seqs,
        all.filter((wanted) => wanted > seq),
      );
      subscription.cut();
    }
  });

  it('4.9 broken at every byte and resumed with its last id, a filtered reader gets each wanted event once', async () => {
    // The last event is a wanted one, so that no round has to wait for a heartbeat.
    const LAST = 22;
    const { stream } = await filled(LAST);
    const probe = await SseSubscription.open(broker.port, stream, { cursor: 'earliest', query: 'types=a,b' });
    await probe.untilSeq(LAST);
    probe.cut();
    for (const cutAfterBytes of range(1, probe.bytesReceived)) {
      const options = { cursor: 'earliest', query: 'types=a,b' };
      const broken = await SseSubscription.ask(broker.port, stream, { ...options, cutAfterBytes }).catch(
        () => undefined,
      );
      await broken?.untilEnded();
      const lastEventId = broken?.lastEventId === '' ? undefined : broken?.lastEventId;
      const resumed = await SseSubscription.open(broker.port, stream, { ...options, lastEventId });
      await resumed.untilSeq(LAST);
      const seqs = [...(broken?.seqs ?? []), ...resumed.seqs];
      assert.deepEqual(seqs, expectedSeqs(1, LAST, ['a', 'b']), `broken after ${cutAfterBytes} bytes`);
      resumed.cut();
    }
  });

  it('4.9 a filtered resume below the floor is refused like any other', async () => {
    const stream = freshStream('types');
    await createStream(broker.port, stream, { retention: { events: 8 } });
    for (const seq of range(1, 40)) await publishTyped(stream, seq);
    const { epoch, floor } = await stateOf(broker.port, stream);
    const options = { lastEventId: cursorOf(epoch, floor - 2), query: 'types=a' };
    const subscription = await SseSubscription.ask(broker.port, stream, options);
    assert.equal(assertProblem(await subscription.refusal(), 410, 'resume_unavailable').reason, 'evicted');
  });
});
