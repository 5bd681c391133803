import assert from 'node:assert/strict';
import { it } from 'node:test';
import { describeOnEdges } from '../support/broker-process.js';
import { range } from '../support/cursor.js';
import { GapChecker } from '../support/gap-checker.js';
import { createStream, freshStream, stateOf } from '../support/gapless-client.js';
import { METRIC } from '../support/metric-names.js';
import { scrape, total } from '../support/prometheus.js';
import { Publisher } from '../support/publisher.js';
import { Reader } from '../support/reader.js';
import type { SseSubscription } from '../support/sse-client.js';

const KIB = 1024;
const MIB = 1024 * KIB;
const STALLED_READERS = 300;
const BACK_AT_A_TIME = 30;
const PUBLISHED_BYTES = 200 * MIB;
const EVENT_BYTES = 8 * KIB;
const BATCH_EVENTS = 64;
const RETENTION_BYTES = 2 * MIB;
const MEMORY_BYTES = 16 * MIB;
const WRITE_BYTES_MAX = 64 * KIB;
/** Heap growth, buffers of requests in flight, allocator slack. A queue per reader would be 300 times 200 MB. */
const SLACK_BYTES = 64 * MIB;
/** At most one batch in flight per reader beyond what the kernel took (I7), and the arena, once. */
const GROWTH_BYTES_MAX = MEMORY_BYTES + STALLED_READERS * WRITE_BYTES_MAX + SLACK_BYTES;

const FLAGS = ['--memory', String(MEMORY_BYTES), '--write-bytes-max', String(WRITE_BYTES_MAX)];

describeOnEdges('300 subscribers that stop reading while 200 MB are published', FLAGS, (broker) => {
  it('cost a bounded amount of memory, harm no one, and come back to all of it or to a refusal (I7, I10, I2)', async (context) => {
    const stream = freshStream('stalled');
    await createStream(broker.port, stream, { retention: { bytes: RETENTION_BYTES } });
    const checker = new GapChecker();
    const readerOf = (name: string) => new Reader({ port: broker.port, stream, name, checker });
    const publisher = new Publisher({
      port: broker.port,
      stream,
      name: 'publisher',
      checker,
      data: (unique) => unique.padEnd(EVENT_BYTES, 'x'),
    });

    await publisher.publish(1);
    const stalled = range(1, STALLED_READERS).map((index) => readerOf(`stalled-${index}`));
    const subscriptions = await Promise.all(
      stalled.map((reader) =>
        reader.connect({
          onEvent: (_event, subscription) => {
            if (subscription.eventCount === 1) subscription.stall();
          },
        }),
      ),
    );
    await Promise.all(subscriptions.map((subscription) => subscription?.untilEvents(1)));
    const healthy = readerOf('healthy');
    const healthySubscription = await healthy.connect();
    assert.ok(healthySubscription);

    const before = await broker.process.residentBytes();
    let peak = before;
    while (publisher.eventCount * EVENT_BYTES < PUBLISHED_BYTES) {
      await publisher.publish(BATCH_EVENTS);
      // The healthy reader sets the pace, so that nothing but its own reading decides whether it is overtaken.
      await healthySubscription.untilSeq(publisher.acked?.last ?? 0);
      peak = Math.max(peak, await broker.process.residentBytes());
      // Half of them wake one after the other: after a second or ten, with much or little in their buffers.
      const progress = (publisher.eventCount * EVENT_BYTES) / PUBLISHED_BYTES;
      for (const subscription of subscriptions.slice(0, (progress * STALLED_READERS) / 2))
        subscription?.unstall();
    }
    context.diagnostic(`resident: ${mib(before)} MiB before, ${mib(peak)} MiB at most`);
    assert.ok(
      peak - before <= GROWTH_BYTES_MAX,
      `memory grew by ${mib(peak - before)} MiB, at most ${mib(GROWTH_BYTES_MAX)} are explained`,
    );
    assert.equal(healthy.eventCount, publisher.eventCount);
    healthy.caughtUp();
    healthySubscription.cut();

    const { head } = await stateOf(broker.port, stream);
    // Not all at once: on a slow machine each would take longer than anybody waits.
    for (let at = 0; at < STALLED_READERS; at += BACK_AT_A_TIME) {
      const some = stalled.slice(at, at + BACK_AT_A_TIME);
      await Promise.all(some.map((reader, index) => comeBack(reader, subscriptions[at + index], head)));
    }
    context.diagnostic(
      `${checker.refusalCount} of ${STALLED_READERS} were refused, the others had everything`,
    );
    assert.ok(checker.refusalCount > 0, 'no reader was stalled long enough to test anything');
    checker.assertClean();
    assert.equal(total(await scrape(broker.port), METRIC.seamViolations), 0);
    publisher.close();
  });
});

/** Reads on to the end of its connection, however that comes, and then resumes until it has caught up. */
async function comeBack(reader: Reader, stalled: SseSubscription | undefined, head: number): Promise<void> {
  assert.ok(stalled);
  stalled.unstall();
  await stalled.until('the end or the head', () => {
    return stalled.ending !== undefined || reader.cursor?.endsWith(`.${head}`) === true;
  });
  stalled.cut();
  await reader.catchUp(head);
}

function mib(bytes: number): number {
  return Math.round(bytes / MIB);
}
