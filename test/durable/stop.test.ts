import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { openCrowd } from '../support/crowd.js';
import { range } from '../support/cursor.js';
import { eventually } from '../support/deadline.js';
import { DurableBroker } from '../support/durable-broker.js';
import { GapChecker } from '../support/gap-checker.js';
import { freshStream, publish, stateOf } from '../support/gapless-client.js';
import { Publisher } from '../support/publisher.js';
import { Reader } from '../support/reader.js';

const STREAMS = 3;
const ROUNDS = 4;
const PROMPT_STOPS = 12;
const ANSWERS = 60;
const BATCH_EVENTS = 5;

/** Publishers that go on until the broker ends, and readers who afterwards want all that they were promised. */
class StopCrew {
  readonly checker = new GapChecker();
  answers = 0;
  readonly #broker: DurableBroker;
  readonly #streams = range(1, STREAMS).map((index) => freshStream(`stopped-${index}`));
  readonly #readers: Reader[];
  #isOver = false;
  #publishing: Promise<unknown> = Promise.resolve();

  constructor(broker: DurableBroker) {
    this.#broker = broker;
    const { port } = broker;
    const { checker } = this;
    this.#readers = this.#streams.map((stream) => new Reader({ port, stream, name: stream, checker }));
  }

  /** Publishes from now on; resolves after some answers. */
  async begin(round: number): Promise<void> {
    this.#isOver = false;
    const wanted = this.answers + ANSWERS;
    this.#publishing = Promise.all(
      this.#streams.map((stream, index) => this.#publish(stream, `${round}.${index}`)),
    );
    await Promise.race([eventually('some answers', () => this.answers >= wanted), this.#publishing]);
    this.#isOver = true;
  }

  /** After the end, in the next process: every reader reads on to the head, and nothing is missing. */
  async judge(): Promise<void> {
    await this.#publishing;
    await this.#broker.startAgain();
    for (const [index, stream] of this.#streams.entries()) {
      const { head } = await stateOf(this.#broker.port, stream);
      await this.#readers[index]?.catchUp(head);
    }
    this.checker.assertClean();
    assert.equal(this.checker.refusalCount, 0);
  }

  async #publish(stream: string, name: string): Promise<void> {
    const publisher = new Publisher({ port: this.#broker.port, stream, name, checker: this.checker });
    try {
      for (;;) {
        await publisher.publish(BATCH_EVENTS);
        this.answers++;
      }
    } catch (error) {
      if (!this.#isOver) throw error;
    } finally {
      publisher.close();
    }
  }
}

describe('a broker that is told to stop', () => {
  for (const fsync of ['always', 'interval']) {
    it(`10 SIGTERM while events are published: it ends with 0, and nothing acknowledged is lost, with --fsync ${fsync} (I3, I4)`, async (context) => {
      const broker = await DurableBroker.start(context, '--fsync', fsync, '--threads', '2');
      const crew = new StopCrew(broker);
      for (const round of range(1, ROUNDS)) {
        await crew.begin(round);
        const exit = await broker.process.stop();
        assert.deepEqual(exit, { code: 0, signal: null }, broker.process.stderr);
        await crew.judge();
      }
      await broker.end();
    });
  }

  it('10 SIGTERM twice: it ends at once with 1 and by itself, and nothing acknowledged is lost (I3, I4)', async (context) => {
    const broker = await DurableBroker.start(context, '--threads', '2', '--drain-ms', '10m');
    const crew = new StopCrew(broker);
    for (const round of range(1, 2 * ROUNDS)) {
      // A broker that has nobody to send away is done at once.
      await openCrowd(broker.port);
      await crew.begin(round);
      broker.process.signal('SIGTERM');
      await eventually('it to drain', () => broker.process.log.some(({ msg }) => msg === 'draining'));
      broker.process.signal('SIGTERM');
      assert.deepEqual(await broker.process.untilExit(), { code: 1, signal: null }, broker.process.stderr);
      await crew.judge();
    }
    await broker.end();
  });

  it('10 SIGTERM as soon as it listens: it ends with 0, again and again', async (context) => {
    const broker = await DurableBroker.start(context, '--threads', '2');
    await publish(broker.port, freshStream('prompt'), 'one');
    for (const _stop of range(1, PROMPT_STOPS)) await broker.restart();
    await broker.end();
  });
});
