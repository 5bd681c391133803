import assert from 'node:assert/strict';
import { it, type TestContext } from 'node:test';
import { describeOnEdges } from '../support/broker-process.js';
import { range } from '../support/cursor.js';
import { eventually } from '../support/deadline.js';
import { GapChecker } from '../support/gap-checker.js';
import { createStream, freshStream, stateOf } from '../support/gapless-client.js';
import { METRIC } from '../support/metric-names.js';
import { type Prng, seededPrng } from '../support/prng.js';
import { scrape, total } from '../support/prometheus.js';
import { Publisher } from '../support/publisher.js';
import { Reader } from '../support/reader.js';

const READERS = 200;
const PUBLISHERS = 4;
const PUBLISHES_EACH = 400;
const BATCH_EVENTS_MAX = 6;
/** Where a connection breaks: within the answer's head and its first frames, or many frames on. */
const EARLY_BREAK_BYTES_MAX = 800;
const LATE_BREAK_BYTES_MAX = 60_000;

class Churn {
  readonly checker = new GapChecker();
  readonly stream = freshStream('churn');
  publishedEvents = 0;
  /** Set once all is published. */
  head: number | undefined;

  constructor(
    readonly prng: Prng,
    readonly port: number,
    /** A reader that is away may come back only after so many more events; 0 brings it back at once. */
    readonly absenceEventsMax: number,
  ) {}
}

describeOnEdges('subscribers that break at random bytes while publishers run at full speed', [], (broker) => {
  it('200 of them resume without a gap and without a duplicate, and none is refused (I1, I2, I3, I6)', async (context) => {
    const churn = new Churn(seededPrng(context), broker.port, 0);
    await createStream(broker.port, churn.stream, { retention: { bytes: 16 * 1024 * 1024 } });
    await run(churn, context);
    assert.equal(churn.checker.refusalCount, 0, 'refused although nothing was evicted');
    assert.ok(churn.checker.resumeCount > READERS);
    churn.checker.assertClean();
  });

  it('where many come back too late, each resume is exact or truly refused (I2, I5)', async (context) => {
    const churn = new Churn(seededPrng(context), broker.port, 300);
    await createStream(broker.port, churn.stream, { retention: { events: 150 } });
    await run(churn, context);
    assert.ok(churn.checker.refusalCount > READERS / 10, 'too few came too late to show anything');
    churn.checker.assertClean();
  });
});

/** Lets publishers and readers run until all is published and every reader has the last event. */
async function run(churn: Churn, context: TestContext): Promise<void> {
  const { checker, stream, port } = churn;
  const publishing = Promise.all(
    range(1, PUBLISHERS).map((index) => runPublisher(churn, `publisher-${index}`)),
  );
  const published = publishing.then(async () => {
    churn.head = (await stateOf(port, stream)).head;
  });
  const readers = range(1, READERS).map(
    (index) => new Reader({ port, stream, checker, name: `reader-${index}` }),
  );
  await Promise.all(readers.map((reader) => follow(churn, reader, published)));
  const { eventCount, resumeCount, refusalCount } = checker;
  context.diagnostic(`${eventCount} events read over ${resumeCount} resumes; ${refusalCount} refusals`);
  assert.equal(total(await scrape(port), METRIC.seamViolations), 0);
}

async function runPublisher(churn: Churn, name: string): Promise<void> {
  const { checker, stream, prng, port } = churn;
  const data = (unique: string) => unique.padEnd(prng.between(unique.length, 300), 'x');
  const publisher = new Publisher({ port, stream, name, checker, data });
  for (let publish = 0; publish < PUBLISHES_EACH; publish++) {
    const events = prng.between(1, BATCH_EVENTS_MAX);
    await publisher.publish(events);
    churn.publishedEvents += events;
  }
  publisher.close();
}

/** Connects and breaks again and again; once all is published, reads to the end. */
async function follow(churn: Churn, reader: Reader, published: Promise<void>): Promise<void> {
  const { prng } = churn;
  while (churn.head === undefined) {
    const breakBytesMax = prng.chance(0.3) ? EARLY_BREAK_BYTES_MAX : LATE_BREAK_BYTES_MAX;
    const subscription = await reader.connect({ cutAfterBytes: prng.between(1, breakBytesMax) });
    if (subscription === undefined) continue;
    await Promise.race([subscription.ended, published]);
    subscription.cut();
    const backAt = churn.publishedEvents + prng.between(0, churn.absenceEventsMax);
    await eventually('others to publish', () => churn.publishedEvents >= backAt || churn.head !== undefined);
  }
  await reader.catchUp(churn.head);
}
