import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { cursorOf, positionOf, range } from '../support/cursor.js';
import { useDurableBroker } from '../support/durable-broker.js';
import { GapChecker } from '../support/gap-checker.js';
import { freshStream, stateOf } from '../support/gapless-client.js';
import { METRIC } from '../support/metric-names.js';
import { seededPrng } from '../support/prng.js';
import { observations, scrape, total } from '../support/prometheus.js';
import { Publisher } from '../support/publisher.js';
import { Reader } from '../support/reader.js';
import { SseSubscription } from '../support/sse-client.js';
import { FilledStream } from './filled-stream.js';

const EVENTS = 30_000;
const EVENT_BYTES = 40;
/** Every cursor this close to the seam is tried, and so many drawn from anywhere. */
const SEAM_EVENTS = 25;
const DRAWN_CURSORS = 30;
const AT_A_TIME = 8;
const MOVING_RESUMES = 150;

for (const threads of [1, 3]) {
  describe(`the seam between log and ring, with --threads ${threads}`, () => {
    const broker = useDurableBroker('--threads', String(threads), '--ring-bytes', '64KiB');

    async function resumes(outcome: string): Promise<number> {
      return total(await scrape(broker.port), 'gapless_resume_attempts_total', { outcome });
    }

    async function catchUps(): Promise<number> {
      return observations(await scrape(broker.port), 'gapless_catch_up_seconds');
    }

    it('4.1, 4.3 a resume at every cursor around it gets every event after that once, in order (I1, I2, I3)', async (context) => {
      const prng = seededPrng(context);
      const stream = await FilledStream.create(broker.port, { eventBytes: EVENT_BYTES });
      await stream.fill(EVENTS);
      const { floor, head } = await stateOf(broker.port, stream.name);
      assert.equal(head, EVENTS);
      assert.ok(floor > head / 2, `the ring holds ${floor}..${head}: there is no seam to test`);
      const cursors = [
        ...[0, 1, 2, head - 1],
        ...range(floor - 1 - SEAM_EVENTS, floor - 1 + SEAM_EVENTS),
        ...range(1, DRAWN_CURSORS).map(() => prng.below(head)),
      ];
      const [fromLog, fromRing, caughtUp] = [await resumes('log'), await resumes('ring'), await catchUps()];

      await inTurns(cursors, async (seq) => {
        const lastEventId = cursorOf(stream.epoch, seq);
        const subscription = await SseSubscription.open(broker.port, stream.name, { lastEventId });
        await subscription.untilSeq(head);
        assert.deepEqual(subscription.idsWithoutEvent, [lastEventId]);
        assert.equal(subscription.header('gapless-floor'), '1');
        stream.assertEvents(subscription.events, { first: seq + 1, last: head });
        subscription.cut();
      });

      const below = cursors.filter((seq) => seq + 1 < floor).length;
      assert.equal((await stateOf(broker.port, stream.name)).floor, floor, 'the seam moved under the test');
      assert.equal((await resumes('log')) - fromLog, below);
      assert.equal((await resumes('ring')) - fromRing, cursors.length - below);
      assert.equal((await catchUps()) - caughtUp, below, 'each was timed until it was back in the ring');
      assert.equal(total(await scrape(broker.port), METRIC.seamViolations), 0);
    });

    it('4.1 while publishers move it, every resume close to it is exact (I1, I2, I3, I8)', async (context) => {
      const prng = seededPrng(context);
      const stream = freshStream('moving');
      const checker = new GapChecker();
      const { port } = broker;
      const publishers = ['one', 'two'].map((name) => new Publisher({ port, stream, name, checker }));
      for (const _batch of range(1, 20)) await publishers[0]?.publish(500);
      let isOver = false;
      const publishing = publishers.map(async (publisher) => {
        while (!isOver) await publisher.publish(prng.between(1, 60));
      });
      publishing.push(
        inTurns(range(1, MOVING_RESUMES), async (index) => {
          const { epoch, floor, head } = await stateOf(port, stream);
          const seq = Math.min(head, Math.max(0, floor - 1 + prng.between(-SEAM_EVENTS, SEAM_EVENTS)));
          const start = cursorOf(epoch, seq);
          const reader = new Reader({ port, stream, name: `reader-${index}`, checker, start });
          const subscription = await reader.connect();
          assert.ok(subscription, 'refused although the log has everything');
          await subscription.untilSeq(head);
          assert.equal(subscription.idsWithoutEvent[0], start);
          subscription.cut();
        }).finally(() => {
          isOver = true;
        }),
      );
      await Promise.all(publishing);
      for (const publisher of publishers) publisher.close();
      const { head } = await stateOf(port, stream);
      await new Reader({ port, stream, name: 'last', checker }).catchUp(head);
      checker.assertClean();
      assert.equal(checker.refusalCount, 0);
      assert.ok((await resumes('log')) > 0);
      assert.equal(total(await scrape(port), METRIC.seamViolations), 0);
    });

    it('4.1 `earliest` is the first event of the log, and counts as read from there', async () => {
      const stream = await FilledStream.create(broker.port, { eventBytes: EVENT_BYTES });
      await stream.fill(5000);
      const fromLog = await resumes('log');
      const subscription = await SseSubscription.open(broker.port, stream.name, { cursor: 'earliest' });
      await subscription.untilSeq(stream.head);
      assert.equal(positionOf(subscription.idsWithoutEvent[0] ?? '').seq, 0);
      stream.assertEvents(subscription.events, { first: 1, last: stream.head });
      assert.equal((await resumes('log')) - fromLog, 1);
      subscription.cut();
    });
  });
}

/** Runs `each` for all items, some at a time. */
async function inTurns<T>(items: readonly T[], each: (item: T) => Promise<void>): Promise<void> {
  const waiting = [...items];
  const turns = range(1, AT_A_TIME).map(async () => {
    for (let item = waiting.shift(); item !== undefined; item = waiting.shift()) await each(item);
  });
  await Promise.all(turns);
}
