import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { range, seqOf } from '../support/cursor.js';
import { useDurableBroker } from '../support/durable-broker.js';
import { closeStream, deleteStream, stateOf } from '../support/gapless-client.js';
import { METRIC } from '../support/metric-names.js';
import { scrape, total } from '../support/prometheus.js';
import { SseSubscription, type SubscribeOptions } from '../support/sse-client.js';
import type { SseEvent } from '../support/sse-parser.js';
import { FilledStream } from './filled-stream.js';

const KIB = 1024;
const EVENT_BYTES = 16 * KIB;
/** 16 MiB: far more than the kernel holds for a reader that does not read, and the ring, take together. */
const EVENTS = 1000;

for (const threads of [1, 3]) {
  describe(`a reader that is too slow for the ring, with --threads ${threads}`, () => {
    const broker = useDurableBroker('--threads', String(threads), '--ring-bytes', '64KiB');

    /** One that stalls before the first event, until all is published. */
    async function fallBehind(options: SubscribeOptions = {}): Promise<{
      stream: FilledStream;
      subscription: SseSubscription;
    }> {
      const stream = await FilledStream.create(broker.port, { eventBytes: EVENT_BYTES });
      const subscription = await SseSubscription.open(broker.port, stream.name, options);
      await subscription.untilPrimed();
      subscription.stall();
      await stream.fill(EVENTS);
      return { stream, subscription };
    }

    it('4.6 it is fed from the log where the ring has moved on, and returns to live (I1, I2, I7)', async () => {
      const before = total(await scrape(broker.port), 'gapless_replayed_bytes_total');
      const { stream, subscription } = await fallBehind();
      subscription.unstall();
      await subscription.untilSeq(EVENTS);
      stream.assertEvents(subscription.events, { first: 1, last: EVENTS });

      // Live again: what comes now comes on the same connection, and is not read from the log.
      const caughtUp = total(await scrape(broker.port), 'gapless_replayed_bytes_total');
      assert.ok(caughtUp > before, 'nothing was read from the log: the reader was not slow enough');
      for (const seq of range(EVENTS + 1, EVENTS + 20)) {
        await stream.fill(1);
        await subscription.untilSeq(seq);
      }
      stream.assertEvents(subscription.events, { first: 1, last: stream.head });
      const after = await scrape(broker.port);
      assert.equal(total(after, 'gapless_replayed_bytes_total'), caughtUp);
      assert.equal(total(after, 'gapless_subscribers_overtaken_total'), 0);
      assert.equal(total(after, METRIC.seamViolations), 0);
      assert.equal(subscription.ending, undefined);
      subscription.cut();
    });

    it('4.6 its neighbour gets every event at once, and the ring goes on without it (I7, I10)', async () => {
      const stream = await FilledStream.create(broker.port, { eventBytes: EVENT_BYTES });
      const slow = await SseSubscription.open(broker.port, stream.name);
      await slow.untilPrimed();
      slow.stall();
      const healthy = await SseSubscription.open(broker.port, stream.name, { keepEvents: false });
      for (const last of range(1, 10).map((round) => (round * EVENTS) / 10)) {
        await stream.fill(EVENTS / 10);
        await healthy.untilSeq(last);
        assert.equal(healthy.eventCount, last);
      }
      const { bytes } = await stateOf(broker.port, stream.name);
      const published = EVENTS * EVENT_BYTES;
      assert.ok(bytes < published / 4, `the ring kept ${bytes} bytes for a reader that does not read`);
      slow.cut();
      healthy.cut();
    });

    it('4.7 when the stream is closed meanwhile it still gets all of it, then the end (I1)', async () => {
      const { stream, subscription } = await fallBehind();
      await closeStream(broker.port, stream.name);
      subscription.unstall();
      assert.equal(await subscription.untilEnded(), 'end');
      const last = subscription.events.pop();
      assert.equal(last?.type, 'stream_closed');
      stream.assertEvents(subscription.events, { first: 1, last: EVENTS });
    });

    it('4.7 when the stream is deleted meanwhile it gets a consecutive part of it, then the end (I1)', async () => {
      const { stream, subscription } = await fallBehind();
      await deleteStream(broker.port, stream.name);
      subscription.unstall();
      assert.equal(await subscription.untilEnded(), 'end');
      const last = subscription.events.pop();
      assert.equal(last?.type, 'stream_deleted');
      stream.assertEvents(subscription.events, { first: 1, last: subscription.events.length });
    });

    it('several that stall and go on in turn are each exact (I1, I2, I10)', async () => {
      const stream = await FilledStream.create(broker.port, { eventBytes: EVENT_BYTES });
      const subscriptions = await Promise.all(
        range(1, 5).map(() => SseSubscription.open(broker.port, stream.name)),
      );
      await Promise.all(subscriptions.map((subscription) => subscription.untilPrimed()));
      for (const round of range(0, 9)) {
        const [stalls, goesOn] = [subscriptions[round % 5], subscriptions[(round + 2) % 5]];
        stalls?.stall();
        goesOn?.unstall();
        await stream.fill(EVENTS / 10);
      }
      for (const subscription of subscriptions) {
        const events = await readOn(stream, subscription);
        stream.assertEvents(events, { first: 1, last: stream.head });
      }
      assert.equal(total(await scrape(broker.port), METRIC.seamViolations), 0);
    });
  });
}

/** All that a subscription gets up to the head; one that stalled for too long on a busy machine comes back for it. */
async function readOn(stream: FilledStream, subscription: SseSubscription): Promise<SseEvent[]> {
  subscription.unstall();
  const hasAll = () => seqOf(subscription.lastEventId) >= stream.head;
  await subscription.until('the end or the head', () => subscription.ending !== undefined || hasAll());
  subscription.cut();
  if (hasAll()) return subscription.events;
  const { lastEventId } = subscription;
  const next = await SseSubscription.open(stream.port, stream.name, { lastEventId });
  return [...subscription.events, ...(await readOn(stream, next))];
}
