import assert from 'node:assert/strict';
import { rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, it, type TestContext } from 'node:test';
import { BrokerProcess } from '../support/broker-process.js';
import { cursorOf, range, seqOf } from '../support/cursor.js';
import { eventually } from '../support/deadline.js';
import { GapChecker } from '../support/gap-checker.js';
import {
  freshStream,
  MEDIA_TYPES,
  type Page,
  publishedOf,
  publishRequest,
  readPage,
  stateOf,
} from '../support/gapless-client.js';
import { HttpConnection } from '../support/http.js';
import { Reader } from '../support/reader.js';
import { mountSmallDisk, NO_SMALL_DISK, unmountDisk } from '../support/small-disk.js';
import type { SseSubscription } from '../support/sse-client.js';

const MIB = 1024 * 1024;
const PUBLISHERS = 6;
const READERS = 4;
const BATCH_EVENTS = 4;
const EVENT_BYTES = 16 * 1024;
/** Answers that say that the disk is full, before the test goes on. */
const REFUSALS = 30;

describe('while the log cannot commit, because the disk is full', () => {
  it('3.3 readers see what is committed and no more, and what they saw outlives a SIGKILL (I3, I4)', async (context) => {
    const crew = await FullDiskCrew.start(context);
    if (crew === null) return context.skip(NO_SMALL_DISK);
    await crew.fill();
    await crew.assertNothingUncommittedIsSeen();
    await crew.kill();
    crew.makeSpace();
    await crew.startAgain();
    await crew.judge();
  });

  it('3.3 readers see the rest as soon as there is space, over the same connections (I1, I4)', async (context) => {
    const crew = await FullDiskCrew.start(context);
    if (crew === null) return context.skip(NO_SMALL_DISK);
    await crew.fill();
    await crew.assertNothingUncommittedIsSeen();
    crew.makeSpace();
    await crew.untilAnswers();
    await crew.assertStillConnected();
    await crew.judge();
  });
});

/** Publishers and readers around a broker on a small disk, which fills up under them. */
class FullDiskCrew {
  readonly #disk: string;
  readonly #stream = freshStream('full');
  readonly #checker = new GapChecker();
  readonly #readers: Reader[];
  readonly #subscriptions: (SseSubscription | undefined)[] = [];
  #broker: BrokerProcess;
  #answers = 0;
  #refusals = 0;
  #isOver = false;
  #publishing: Promise<unknown> = Promise.resolve();

  private constructor(disk: string, broker: BrokerProcess) {
    this.#disk = disk;
    this.#broker = broker;
    const { port } = broker;
    this.#readers = range(1, READERS).map(
      (index) => new Reader({ port, stream: this.#stream, name: `reader-${index}`, checker: this.#checker }),
    );
  }

  /** Null where no small disk can be had. */
  static async start(context: TestContext): Promise<FullDiskCrew | null> {
    const disk = mountSmallDisk(16);
    if (disk === null) return null;
    let crew: FullDiskCrew | undefined;
    context.after(async () => {
      if (crew?.broker.isRunning) await crew.broker.kill();
      unmountDisk(disk);
    });
    writeFileSync(join(disk, 'ballast'), Buffer.alloc(10 * MIB));
    crew = new FullDiskCrew(
      disk,
      await BrokerProcess.start('--data-dir', join(disk, 'data'), '--threads', '2'),
    );
    return crew;
  }

  get broker(): BrokerProcess {
    return this.#broker;
  }

  /** Publishes until commits fail, with readers on all the way. */
  async fill(): Promise<void> {
    const { port } = this.#broker;
    const publishing = range(1, PUBLISHERS).map((index) => this.#publish(port, `publisher-${index}`));
    this.#publishing = Promise.all(publishing);
    await Promise.race([this.#publishing, eventually('an answer', () => this.#answers > 0)]);
    for (const reader of this.#readers) this.#subscriptions.push(await reader.connect());
    const full = eventually('a full disk', () => this.#refusals >= REFUSALS);
    await Promise.race([this.#publishing, full]);
  }

  /** By no way of reading. */
  async assertNothingUncommittedIsSeen(): Promise<void> {
    const { port } = this.#broker;
    const { epoch, committed, head } = await stateOf(port, this.#stream);
    assert.ok(head > committed, 'something waits for its commit');
    const page = await readPage(port, this.#stream, `cursor=${cursorOf(epoch, committed)}&wait=1`);
    assert.deepEqual(page.json<Page>().events, []);
    const ahead = await readPage(port, this.#stream, `cursor=${cursorOf(epoch, committed + 1)}`);
    assert.equal(ahead.status, 410);
    const after = await stateOf(port, this.#stream);
    assert.equal(after.committed, committed, 'nothing is committed on a full disk');
    for (const { cursor } of this.#readers) {
      assert.ok(
        cursor !== null && seqOf(cursor) <= committed,
        `${cursor} was seen, up to ${committed} is there`,
      );
    }
  }

  makeSpace(): void {
    rmSync(join(this.#disk, 'ballast'));
  }

  async untilAnswers(): Promise<void> {
    const wanted = this.#answers + PUBLISHERS;
    await Promise.race([this.#publishing, eventually('answers again', () => this.#answers >= wanted)]);
    this.#isOver = true;
    await this.#publishing;
  }

  async kill(): Promise<void> {
    this.#isOver = true;
    await this.#broker.kill();
    await this.#publishing;
  }

  /** After a kill: ids that nobody saw are given to other events now. */
  async startAgain(): Promise<void> {
    this.#broker = await this.#broker.startAgain();
    this.#isOver = false;
    this.#publishing = this.#publish(this.#broker.port, 'after');
    await this.untilAnswers();
  }

  /** All readers have come to the head over the connections that they began with. */
  async assertStillConnected(): Promise<void> {
    const { head } = await stateOf(this.#broker.port, this.#stream);
    for (const subscription of this.#subscriptions) await subscription?.untilSeq(head);
    assert.ok(this.#subscriptions.every((subscription) => subscription?.ending === undefined));
    for (const subscription of this.#subscriptions) subscription?.cut();
  }

  async judge(): Promise<void> {
    const { head } = await stateOf(this.#broker.port, this.#stream);
    await Promise.all(this.#readers.map((reader) => reader.catchUp(head)));
    this.#checker.assertClean();
    assert.equal(this.#checker.refusalCount, 0);
    assert.deepEqual(await this.#broker.stop(), { code: 0, signal: null });
  }

  async #publish(port: number, name: string): Promise<void> {
    try {
      const connection = await HttpConnection.open(port);
      for (let number = 1; !this.#isOver; number++) {
        const publish = `${name}/${number}`;
        const contents = range(1, BATCH_EVENTS).map((event) =>
          `${publish}:${event}:`.padEnd(EVENT_BYTES, '.'),
        );
        this.#checker.observe({ kind: 'publish-begun', publish, stream: this.#stream, contents });
        const asked = publishRequest(this.#stream, contents.join('\n'), MEDIA_TYPES.ndjson);
        const response = await connection.request(asked);
        if (response.status !== 200) {
          this.#refusals++;
          continue;
        }
        this.#answers++;
        this.#checker.observe({ kind: 'publish-acked', publish, ...publishedOf(response) });
      }
      connection.destroy();
    } catch (error) {
      if (!this.#isOver) throw error;
    }
  }
}
