import assert from 'node:assert/strict';
import { rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, it, type TestContext } from 'node:test';
import { FilledStream } from '../durable/filled-stream.js';
import type { BrokerProcess } from '../support/broker-process.js';
import { range } from '../support/cursor.js';
import { eventually } from '../support/deadline.js';
import { temporaryDirectory } from '../support/durable-broker.js';
import { GapChecker } from '../support/gap-checker.js';
import { assertProblem, freshStream, readPage, stateOf } from '../support/gapless-client.js';
import { Publisher } from '../support/publisher.js';
import { Reader } from '../support/reader.js';
import { SseSubscription } from '../support/sse-client.js';
import { type Fault, startWithFault } from '../support/thread-fault.js';

const PUBLISHERS = 4;
const READERS = 8;
const ANSWERS = 40;
const BATCH_EVENTS = 5;
const REPLAYED_EVENTS = 500;
const SMALL_RING = ['--ring-bytes', '4KiB'];
const FROM_FIRST = { cursor: 'earliest' };

const FATAL_LEVEL = 60;

/** What the process says, and whether it can still say it itself. */
const ENDS: readonly { fault: Fault; says: RegExp | null }[] = [
  { fault: { thread: 'edge', how: 'throw' }, says: /planted/ },
  // With its sockets open the runtime ends the process, by a signal.
  { fault: { thread: 'edge', how: 'exit' }, says: null },
  { fault: { thread: 'log', how: 'throw' }, says: /planted/ },
  { fault: { thread: 'log', how: 'exit' }, says: /log thread ended with code 7/ },
];

describe('a thread of the broker dies: so does the process, and the next one has everything', () => {
  for (const { fault, says } of ENDS) {
    it(`${fault.thread}, by ${fault.how} (I1, I2, I3, I4)`, async (context) => {
      const broker = await start(context, fault);
      const crew = new Crew(broker.port);
      await crew.begin();
      broker.signal('SIGUSR2');
      const exit = await broker.untilExit();
      assert.notEqual(exit.code, 0, 'as if nothing had happened');
      if (says !== null) {
        assert.deepEqual(exit, { code: 1, signal: null }, broker.stderr);
        const said = broker.log.filter(({ level }) => level === FATAL_LEVEL);
        assert.match(JSON.stringify(said), says);
      }
      await crew.settled();

      const next = await broker.startAgain();
      context.after(() => next.isRunning && next.kill());
      await crew.judge();
      assert.deepEqual(await next.stop(), { code: 0, signal: null });
      assert.deepEqual(next.errors, []);
    });
  }
});

describe('an invariant does not hold on a thread of the replay pool', () => {
  it('the process ends and says so, where a read that failed would have been answered', async (context) => {
    const armed = join(temporaryDirectory(context), 'armed');
    const broker = await start(
      context,
      { thread: 'replay', how: 'assert', within: 'read', armed },
      ...SMALL_RING,
    );
    const stream = await FilledStream.create(broker.port, { eventBytes: 2 * 1024 });
    await stream.fill(REPLAYED_EVENTS);
    assert.equal((await readPage(broker.port, stream.name)).status, 200, 'not armed yet');
    writeFileSync(armed, '');
    await Promise.allSettled([readPage(broker.port, stream.name)]);
    assert.deepEqual(await broker.untilExit(), { code: 1, signal: null }, broker.stderr);
    const said = broker.log.filter(({ level }) => level === FATAL_LEVEL);
    assert.match(JSON.stringify(said), /InvariantError.*planted/);
  });
});

describe('a thread of the replay pool dies within a read', () => {
  for (const how of ['throw', 'exit'] as const) {
    it(`by ${how}: who asked is told, the pool has another, and every resume is exact (I1, I2)`, async (context) => {
      const armed = join(temporaryDirectory(context), 'armed');
      const broker = await start(context, { thread: 'replay', how, within: 'read', armed }, ...SMALL_RING);
      const stream = await FilledStream.create(broker.port, { eventBytes: 2 * 1024 });
      await stream.fill(REPLAYED_EVENTS);
      const checker = new GapChecker();
      const readers = range(1, READERS).map(
        (index) => new Reader({ port: broker.port, stream: stream.name, name: `reader-${index}`, checker }),
      );

      writeFileSync(armed, '');
      const page = await readPage(broker.port, stream.name);
      assertProblem(page, 503, 'log_unavailable');
      for (const reader of readers) {
        const subscription = await reader.connect();
        assert.equal(await subscription?.untilEnded(), 'cut', 'no end that looks as if it were one');
      }
      rmSync(armed);

      await Promise.all(readers.map((reader) => reader.catchUp(REPLAYED_EVENTS)));
      checker.assertClean();
      assert.equal(checker.refusalCount, 0);
      assert.equal((await readPage(broker.port, stream.name)).status, 200);
      assert.deepEqual(await broker.stop(), { code: 0, signal: null });
    });

    it(`by ${how}, and no other can start: the process ends, for nobody would be answered`, async (context) => {
      const armed = join(temporaryDirectory(context), 'armed');
      const broker = await start(context, { thread: 'replay', how, within: 'start', armed }, ...SMALL_RING);
      const stream = await FilledStream.create(broker.port, { eventBytes: 2 * 1024 });
      await stream.fill(REPLAYED_EVENTS);
      writeFileSync(armed, '');
      const readers = range(1, READERS).map(() => SseSubscription.ask(broker.port, stream.name, FROM_FIRST));
      await Promise.allSettled(readers);
      assert.deepEqual(await broker.untilExit(), { code: 1, signal: null }, broker.stderr);
      assert.ok(broker.log.some(({ level }) => level === FATAL_LEVEL));
    });
  }
});

async function start(context: TestContext, fault: Fault, ...more: string[]): Promise<BrokerProcess> {
  const flags = ['--data-dir', temporaryDirectory(context), '--threads', '2', ...more];
  const broker = await startWithFault(fault, ...flags);
  context.after(() => broker.isRunning && broker.kill());
  return broker;
}

/** Publishers and readers, over all edges, who go on until the broker is gone. */
class Crew {
  readonly #checker = new GapChecker();
  readonly #port: number;
  readonly #stream = freshStream('bereft');
  readonly #readers: Reader[];
  #answers = 0;
  #isOver = false;
  #work: Promise<unknown> = Promise.resolve();

  constructor(port: number) {
    this.#port = port;
    this.#readers = range(1, READERS).map((index) => {
      return new Reader({ port, stream: this.#stream, name: `reader-${index}`, checker: this.#checker });
    });
  }

  async begin(): Promise<void> {
    const publishing = range(1, PUBLISHERS).map((index) => this.#publish(`publisher-${index}`));
    const reading = this.#readers.map(async (reader) => (await reader.connect())?.ended);
    this.#work = Promise.all([...publishing, ...reading]);
    await Promise.race([this.#work, eventually('answers', () => this.#answers >= ANSWERS)]);
    this.#isOver = true;
  }

  /** After the death: resolves when everybody has noticed. */
  async settled(): Promise<void> {
    await this.#work;
  }

  async judge(): Promise<void> {
    const { head } = await stateOf(this.#port, this.#stream);
    await Promise.all(this.#readers.map((reader) => reader.catchUp(head)));
    this.#checker.assertClean();
    assert.equal(this.#checker.refusalCount, 0);
  }

  async #publish(name: string): Promise<void> {
    const publisher = new Publisher({
      port: this.#port,
      stream: this.#stream,
      name,
      checker: this.#checker,
    });
    try {
      for (;;) {
        await publisher.publish(BATCH_EVENTS);
        this.#answers++;
      }
    } catch (error) {
      if (!this.#isOver) throw error;
    } finally {
      publisher.close();
    }
  }
}
