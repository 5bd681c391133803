import assert from 'node:assert/strict';
import { setImmediate as nextTurn } from 'node:timers/promises';
import { range } from '../support/cursor.js';
import { eventually } from '../support/deadline.js';
import { GapChecker } from '../support/gap-checker.js';
import { MEDIA_TYPES, publishedOf, publishRequest, stateOf } from '../support/gapless-client.js';
import { HttpConnection, type HttpResponse } from '../support/http.js';
import type { Prng } from '../support/prng.js';
import { Reader } from '../support/reader.js';
import type { SseSubscription } from '../support/sse-client.js';
import { KillAudit } from './kill-audit.js';

const PUBLISHERS_PER_STREAM = 3;
const DATA_BYTES_MAX = 300;
const BATCH_EVENTS_MAX = 40;
/** One in so many publishes is a batch that takes the log several reads. */
const LARGE_BATCH_RATE = 0.01;
const LARGE_BATCH_EVENTS = 1500;
const CUT_BYTES_MAX = 40_000;
const STALL_ANSWERS_MAX = 60;

/** Followers of each stream: those that only read, those that break at any byte, and those that stall. */
const FOLLOWERS = { steady: 3, cut: 4, slow: 3 };

interface Follower {
  kind: keyof typeof FOLLOWERS;
  name: string;
  stream: string;
  reader: Reader;
}

/**
 * Publishers and subscribers around a broker that is killed again and again. Publishers are new in each round;
 * subscribers live through all of them, each coming back with the last id that it saw.
 */
export class KillCrew {
  readonly checker = new GapChecker();
  readonly audit: KillAudit;
  answers = 0;

  readonly #prng: Prng;
  readonly #port: number;
  readonly #streams: readonly string[];
  readonly #followers: Follower[];
  #killed = false;
  #work: Promise<unknown> = Promise.resolve();

  constructor(options: { prng: Prng; port: number; streams: readonly string[] }) {
    const { prng, port, streams } = options;
    this.#prng = prng;
    this.#port = port;
    this.#streams = streams;
    this.audit = new KillAudit(port, this.checker, streams);
    this.#followers = streams.flatMap((stream) =>
      Object.entries(FOLLOWERS).flatMap(([kind, count]) =>
        range(1, count).map((index) => {
          const name = `${kind}-${index}/${stream}`;
          const reader = new Reader({ port, stream, name, checker: this.checker });
          return { kind: kind as Follower['kind'], name, stream, reader };
        }),
      ),
    );
  }

  /** Lets everybody loose on a broker that has just come up. */
  begin(round: number): void {
    this.#killed = false;
    const publishers = this.#streams.flatMap((stream) =>
      range(1, PUBLISHERS_PER_STREAM).map((index) => this.#publish(stream, `${round}.${index}`)),
    );
    const readers = this.#followers.map((follower) => this.#follow(follower));
    this.#work = Promise.all([...publishers, ...readers]);
    // Failures are reported by whoever waits for the work; until then nothing is unhandled.
    this.#work.catch(() => undefined);
  }

  /** Resolves when publishers have been answered so many times more; fails as soon as one of the crew does. */
  async untilAnswers(count: number): Promise<void> {
    const wanted = this.answers + count;
    const answered = eventually(`${count} answers`, () => this.answers >= wanted);
    await Promise.race([answered, this.#work.then(() => assert.fail('the crew ended by itself'))]);
  }

  /** Call it right before the kill: from now on broken connections are expected. */
  expectKill(): void {
    this.#killed = true;
  }

  /** After the kill: resolves when everybody has noticed. */
  async untilNoticed(): Promise<void> {
    await this.#work;
  }

  /** All subscribers read to the end of what is there. */
  async catchUp(): Promise<void> {
    for (const stream of this.#streams) {
      const { head } = await stateOf(this.#port, stream);
      const own = this.#followers.filter((follower) => follower.stream === stream);
      await Promise.all(own.map(({ reader }) => reader.catchUp(head)));
    }
  }

  async #publish(stream: string, name: string): Promise<void> {
    const connection = await this.#unlessKilled(HttpConnection.open(this.#port));
    for (let number = 1; connection !== undefined && !this.#killed; number++) {
      const publish = `${stream}/${name}/${number}`;
      const contents = this.#contents(publish);
      this.checker.observe({ kind: 'publish-begun', publish, stream, contents });
      const mediaType = contents.length === 1 ? MEDIA_TYPES.text : MEDIA_TYPES.ndjson;
      const asked = publishRequest(stream, contents.join('\n'), mediaType);
      const response = await this.#unlessKilled(connection.request(asked));
      if (response !== undefined) this.#observeAnswer(publish, response);
    }
    connection?.destroy();
  }

  #observeAnswer(publish: string, response: HttpResponse): void {
    this.answers++;
    // Full of what waits for its commit: told so, and nothing was appended.
    if (response.status === 429) this.checker.observe({ kind: 'publish-refused', publish });
    else this.checker.observe({ kind: 'publish-acked', publish, ...publishedOf(response) });
  }

  #contents(unique: string): string[] {
    const prng = this.#prng;
    const isLarge = prng.chance(LARGE_BATCH_RATE);
    const events = isLarge ? LARGE_BATCH_EVENTS : prng.chance(0.5) ? 1 : prng.between(2, BATCH_EVENTS_MAX);
    return range(1, events).map((index) => `${unique}:${index}:`.padEnd(prng.below(DATA_BYTES_MAX), '.'));
  }

  async #follow({ kind, name, reader }: Follower): Promise<void> {
    while (!this.#killed) {
      const isCut = kind === 'cut';
      const cutting = isCut ? { cutAfterBytes: this.#prng.between(1, CUT_BYTES_MAX) } : {};
      const subscription = await this.#unlessKilled(reader.connect(cutting));
      if (subscription === undefined) {
        assert.ok(this.#killed, `${name} was refused: ${JSON.stringify(reader.refusals)}`);
        return;
      }
      if (kind === 'slow') await this.#stall(subscription);
      await subscription.ended;
      if (subscription.failure !== undefined) throw subscription.failure;
      if (!isCut) assert.ok(this.#killed, `${name} was sent away (${subscription.ending})`);
      // A reader that breaks at once, again and again, leaves the others a turn.
      await nextTurn();
    }
  }

  /** Stops reading, and goes on after some more publishes; what the kernel held when the broker died is read as well. */
  async #stall(subscription: SseSubscription): Promise<void> {
    subscription.stall();
    const until = this.answers + this.#prng.between(1, STALL_ANSWERS_MAX);
    await eventually('more publishes', () => this.#killed || this.answers >= until);
    subscription.unstall();
  }

  /** Undefined if it failed because the broker was killed. */
  async #unlessKilled<T>(attempt: Promise<T>): Promise<T | undefined> {
    try {
      return await attempt;
    } catch (error) {
      if (this.#killed) return undefined;
      throw error;
    }
  }
}
