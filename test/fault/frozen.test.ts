import assert from 'node:assert/strict';
import { describe, it, type TestContext } from 'node:test';
import { setTimeout as delay } from 'node:timers/promises';
import { BrokerProcess } from '../support/broker-process.js';
import { range } from '../support/cursor.js';
import { eventually } from '../support/deadline.js';
import { temporaryDirectory } from '../support/durable-broker.js';
import { GapChecker } from '../support/gap-checker.js';
import { freshStream, type Page, readPage, stateOf } from '../support/gapless-client.js';
import { Publisher } from '../support/publisher.js';
import { Reader } from '../support/reader.js';

/** Longer than every interval of the broker but those that only a dead peer reaches. */
const FROZEN_MS = Number(process.env.FROZEN_MS ?? 2500);
const ROUNDS = 2;
const PUBLISHERS = 3;
const READERS = 6;
const BATCH_EVENTS = 5;
/** Publishes that are answered before a freeze, and after it. */
const ANSWERS = 50;
const HEARTBEAT_FLAGS = ['--heartbeat-interval-ms', '500ms'];

describe('the process is stopped for seconds (SIGSTOP), and goes on (SIGCONT)', () => {
  it('in memory: publishers and subscribers go on over the same connections (I1, I3)', (context) =>
    run(context, []));

  it('with a log: publishers and subscribers go on over the same connections (I1, I3, I4)', (context) =>
    run(context, ['--data-dir', temporaryDirectory(context)]));
});

async function run(context: TestContext, flags: readonly string[]): Promise<void> {
  const broker = await BrokerProcess.start('--threads', '2', ...HEARTBEAT_FLAGS, ...flags);
  context.after(() => broker.isRunning && broker.kill());
  const { port } = broker;
  const stream = freshStream('frozen');
  const checker = new GapChecker();
  let answers = 0;
  let isOver = false;

  const newReader = (name: string) => new Reader({ port, stream, name, checker });
  const publishers = range(1, PUBLISHERS).map(
    (index) => new Publisher({ port, stream, name: `publisher-${index}`, checker }),
  );
  const publishing = Promise.all(
    publishers.map(async (publisher) => {
      while (!isOver) {
        await publisher.publish(BATCH_EVENTS);
        answers++;
      }
    }),
  );
  const untilMore = async () => {
    const wanted = answers + ANSWERS;
    await Promise.race([publishing, eventually('more answers', () => answers >= wanted)]);
  };
  await untilMore();
  const readers = range(1, READERS).map((index) => newReader(`reader-${index}`));
  const subscriptions = await Promise.all(readers.map((reader) => reader.connect()));

  for (const round of range(1, ROUNDS)) {
    await untilMore();
    await broker.standStill();
    // Whoever comes meanwhile waits in the kernel, and is served like the others.
    const newcomer = newReader(`newcomer-${round}`);
    const joining = newcomer.connect();
    const late = new Publisher({ port, stream, name: `late-${round}`, checker });
    const answered = late.publish(BATCH_EVENTS);
    const polled = readPage(port, stream, 'cursor=latest&wait=10');
    await delay(FROZEN_MS);
    broker.signal('SIGCONT');
    await answered;
    assert.ok((await polled).json<Page>().events.length > 0);
    subscriptions.push(await joining);
    readers.push(newcomer);
    publishers.push(late);
    await untilMore();
  }
  isOver = true;
  await publishing;

  const { head } = await stateOf(port, stream);
  for (const [index, subscription] of subscriptions.entries()) {
    await subscription?.untilSeq(head);
    assert.equal(subscription?.ending, undefined, 'the connection of before is the one of after');
    readers[index]?.caughtUp();
  }
  checker.assertClean();
  assert.equal(checker.refusalCount, 0);
  for (const subscription of subscriptions) subscription?.cut();
  for (const publisher of publishers) publisher.close();
  assert.deepEqual(await broker.stop(), { code: 0, signal: null });
  assert.deepEqual(broker.errors, []);
}
