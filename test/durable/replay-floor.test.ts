import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { cursorOf, positionOf, range, seqOf } from '../support/cursor.js';
import { eventually } from '../support/deadline.js';
import { DurableBroker, useDurableBroker } from '../support/durable-broker.js';
import {
  assertProblem,
  type Page,
  type Problem,
  readPage,
  type StreamState,
  stateOf,
} from '../support/gapless-client.js';
import { METRIC } from '../support/metric-names.js';
import { scrape, total } from '../support/prometheus.js';
import { SseSubscription } from '../support/sse-client.js';
import { FilledStream } from './filled-stream.js';

const KIB = 1024;
const EVENT_BYTES = 200;
const EVENTS = 10_000;
const KEPT_BYTES = 512 * KIB;
const KEPT_EVENTS = 3000;
const FLOOR_EVENTS = 10;
const MORE_EVENTS = 500;
/** What limits by bytes are exact to. */
const BLOCK_BYTES_MAX = 64 * KIB;

/** More than the ring keeps of it, and less than is published. */
const RETENTIONS = {
  bytes: { retention: { bytes: KEPT_BYTES } },
  events: { retention: { events: KEPT_EVENTS } },
};

/** A stream whose log has evicted all that it will: until something is published, its floor stands. */
async function trimmed(
  port: number,
  config: { retention: { bytes?: number; events?: number } },
): Promise<{ stream: FilledStream; lowest: number }> {
  const { bytes = Number.POSITIVE_INFINITY, events = Number.POSITIVE_INFINITY } = config.retention;
  const stream = await FilledStream.create(port, { eventBytes: EVENT_BYTES, config });
  await stream.fill(EVENTS);
  for (;;) {
    const { logFloor, floor } = await eventually('the log to evict', async () => {
      const state = await stateOf(port, stream.name);
      const isWithin = (state.logFloor ?? 0) > 1 && keptEvents(state) <= 2 * events;
      return isWithin && keptEvents(state) * stream.frameBytesMin <= 2 * bytes && state;
    });
    const lowest = logFloor ?? 0;
    assert.ok(lowest <= floor, 'the ring keeps what the log does not');
    // So close to twice the limit that, counted in whole blocks, it may be above: some more has it evicted for sure.
    const framesMax = (stream.head - lowest + 1) * stream.frameBytesMax;
    if (framesMax <= 2 * bytes - BLOCK_BYTES_MAX) return { stream, lowest };
    await stream.fill(MORE_EVENTS);
  }
}

function keptEvents({ logFloor, head }: StreamState): number {
  return head - (logFloor ?? 0) + 1;
}

for (const threads of [1, 3]) {
  describe(`below the floor of the log, with --threads ${threads}`, () => {
    const broker = useDurableBroker('--threads', String(threads), '--ring-bytes', '64KiB');

    for (const [limit, config] of Object.entries(RETENTIONS)) {
      it(`4.4 with retention by ${limit} every cursor below is 410 \`evicted\`, and from the floor on all is exact (I2)`, async () => {
        const { stream, lowest } = await trimmed(broker.port, config);
        const { epoch, name, head } = stream;
        const evictedBefore = total(await scrape(broker.port), METRIC.resumeUnavailable, {
          reason: 'evicted',
        });
        const refused = [0, 1, ...range(lowest - 1 - FLOOR_EVENTS, lowest - 2)];
        for (const seq of refused) {
          const cursor = cursorOf(epoch, seq);
          const refusal = await SseSubscription.ask(broker.port, name, { lastEventId: cursor });
          const problem = assertProblem(await refusal.refusal(), 410, 'resume_unavailable');
          assertEvicted(problem, { stream, cursor, lowest });
          const page = await readPage(broker.port, name, `cursor=${cursor}`);
          assertEvicted(assertProblem(page, 410, 'resume_unavailable'), { stream, cursor, lowest });
        }
        for (const seq of range(lowest - 1, lowest - 1 + FLOOR_EVENTS)) {
          const lastEventId = cursorOf(epoch, seq);
          const subscription = await SseSubscription.open(broker.port, name, { lastEventId });
          await subscription.untilSeq(head);
          stream.assertEvents(subscription.events, { first: seq + 1, last: head });
          assert.equal(subscription.header('gapless-floor'), String(lowest));
          subscription.cut();
        }
        const after = await scrape(broker.port);
        assert.equal(
          total(after, METRIC.resumeUnavailable, { reason: 'evicted' }) - evictedBefore,
          2 * refused.length,
        );
        assert.equal(total(after, METRIC.seamViolations), 0);
      });
    }

    it('4.1, 6 `earliest` and a page without a cursor begin with the lowest event that the log has', async () => {
      const { stream, lowest } = await trimmed(broker.port, RETENTIONS.bytes);
      const subscription = await SseSubscription.open(broker.port, stream.name, { cursor: 'earliest' });
      await subscription.untilSeq(stream.head);
      stream.assertEvents(subscription.events, { first: lowest, last: stream.head });
      const { events } = (await readPage(broker.port, stream.name)).json<Page>();
      assert.equal(seqOf(events[0]?.id ?? ''), lowest);
      subscription.cut();
    });

    it('4.5 who asked for the event is told in it where it can go on, and goes on there (I2)', async () => {
      const { stream, lowest } = await trimmed(broker.port, RETENTIONS.bytes);
      const cursor = cursorOf(stream.epoch, 1);
      const told = await SseSubscription.open(broker.port, stream.name, {
        cursor,
        query: 'on_unavailable=event',
      });
      assert.equal(await told.untilEnded(), 'end');
      assert.deepEqual(
        told.events.map(({ type }) => type),
        ['resume_unavailable'],
      );
      const problem = JSON.parse(told.data[0] ?? '') as Problem;
      assertEvicted(problem, { stream, cursor, lowest });
      const lastEventId = problem.earliest;
      const back = await SseSubscription.open(broker.port, stream.name, { lastEventId });
      await back.untilSeq(stream.head);
      stream.assertEvents(back.events, { first: lowest, last: stream.head });
      back.cut();
    });

    it('4.6 a reader that the log itself has passed is cut, and refused when it comes back (I2)', async () => {
      const stream = await FilledStream.create(broker.port, {
        eventBytes: 16 * KIB,
        config: RETENTIONS.bytes,
      });
      const subscription = await SseSubscription.open(broker.port, stream.name);
      await subscription.untilPrimed();
      subscription.stall();
      await stream.fill(2000);
      await eventually('the log to evict', async () => {
        const { logFloor } = await stateOf(broker.port, stream.name);
        return logFloor !== null && logFloor > 1000;
      });
      subscription.unstall();
      assert.equal(await subscription.untilEnded(), 'cut');
      stream.assertEvents(subscription.events, { first: 1, last: subscription.eventCount });
      const back = await SseSubscription.ask(broker.port, stream.name, {
        lastEventId: subscription.lastEventId,
      });
      const problem = assertProblem(await back.refusal(), 410, 'resume_unavailable');
      assert.equal(problem.reason, 'evicted');
      assert.ok(positionOf(subscription.lastEventId).seq + 1 < (problem.floor ?? 0));
    });
  });
}

describe('the floor of the log over a restart', () => {
  it('never goes back, and what is refused before is refused after (I9, I2)', async (context) => {
    const broker = await DurableBroker.start(context, '--ring-bytes', '64KiB');
    const { stream, lowest } = await trimmed(broker.port, RETENTIONS.bytes);
    for (const _restart of range(1, 2)) {
      await broker.killAndStart();
      const { logFloor, committed } = await stateOf(broker.port, stream.name);
      assert.ok(logFloor !== null && logFloor >= lowest, `the floor was ${lowest} and is ${logFloor}`);
      assert.equal(committed, stream.head);
      const refusal = await SseSubscription.ask(broker.port, stream.name, {
        lastEventId: cursorOf(stream.epoch, lowest - 2),
      });
      const problem = assertProblem(await refusal.refusal(), 410, 'resume_unavailable');
      assertEvicted(problem, {
        stream,
        cursor: cursorOf(stream.epoch, lowest - 2),
        lowest: logFloor,
      });
      const subscription = await SseSubscription.open(broker.port, stream.name, { cursor: problem.earliest });
      await subscription.untilSeq(stream.head);
      stream.assertEvents(subscription.events, { first: logFloor, last: stream.head });
      subscription.cut();
    }
    await broker.end();
  });
});

function assertEvicted(
  problem: Problem,
  { stream, cursor, lowest }: { stream: FilledStream; cursor: string; lowest: number },
): void {
  const { epoch } = stream;
  const { reason, cursor: asked, epoch: now, floor, head, earliest } = problem;
  assert.deepEqual(
    { reason, asked, now, floor, head, earliest },
    {
      reason: 'evicted',
      asked: cursor,
      now: epoch,
      floor: lowest,
      head: stream.head,
      earliest: cursorOf(epoch, lowest - 1),
    },
  );
}
