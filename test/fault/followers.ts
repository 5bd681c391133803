import assert from 'node:assert/strict';
import { setTimeout as delay } from 'node:timers/promises';
import { range } from '../support/cursor.js';
import type { GapChecker } from '../support/gap-checker.js';
import { Reader } from '../support/reader.js';

/** Where nothing was told, for there was nobody to tell it. */
const AGAIN_MS = 100;

/** Readers that come back when they are told to, as a browser does. */
export class Followers {
  /** What each was told at the end of a connection that the broker ended, milliseconds. */
  readonly told: number[] = [];
  readonly readers: Reader[];
  #isOver = false;
  readonly #over: Promise<void>;
  #end = (): void => undefined;
  #work: Promise<unknown> = Promise.resolve();

  constructor(options: {
    port: number;
    stream: string;
    count: number;
    checker: GapChecker;
    severalServers?: boolean;
  }) {
    const { count, ...common } = options;
    this.#over = new Promise((resolve) => {
      this.#end = resolve;
    });
    this.readers = range(1, count).map((index) => new Reader({ ...common, name: `reader-${index}` }));
  }

  begin(): void {
    this.#work = Promise.all(this.readers.map((reader) => this.#follow(reader)));
    this.#work.catch(() => undefined);
  }

  /** Nobody comes back any more, for the test is over. */
  abandon(): void {
    this.#isOver = true;
    this.#end();
  }

  async end(): Promise<void> {
    this.abandon();
    await this.#work;
  }

  async #follow(reader: Reader): Promise<void> {
    while (!this.#isOver) {
      const subscription = await reader.connect().catch(() => undefined);
      if (subscription?.status !== 200) {
        await delay(AGAIN_MS);
        continue;
      }
      await Promise.race([subscription.ended, this.#over]);
      if (subscription.failure !== undefined) throw subscription.failure;
      if (this.#isOver) return subscription.cut();
      assert.equal(subscription.ending, 'end', 'a broker that drains ends each subscription properly');
      assert.ok(subscription.retries.length >= 2, 'and tells when to come back');
      const told = subscription.retries.at(-1) as number;
      this.told.push(told);
      await delay(told);
    }
  }
}
