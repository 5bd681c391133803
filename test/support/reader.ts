import assert from 'node:assert/strict';
import { positionOf, seqOf } from './cursor.js';
import type { GapChecker } from './gap-checker.js';
import type { Problem } from './gapless-client.js';
import { SseSubscription, type SubscribeOptions } from './sse-client.js';

const CATCH_UP_ATTEMPTS_MAX = 20;

export interface ReaderOptions {
  port: number;
  stream: string;
  name: string;
  checker: GapChecker;
  /** Where it starts before it was given a position: a word or a cursor. Default `earliest`. */
  start?: string;
  /** Whether several servers answer: one may not have heard yet of the newest event that another has said or shown. */
  severalServers?: boolean;
}

/**
 * One logical follower of a stream, as an application has it: it breaks, comes back with the last id it was given, and
 * reports all of it to the gap checker. Events are not kept, so that a reader of millions of them stays small.
 */
export class Reader {
  eventCount = 0;
  readonly refusals: Problem[] = [];

  readonly #options: ReaderOptions;
  #connectionCount = 0;
  #asked: string | null = null;
  #subscription: SseSubscription | undefined;
  /** Tells the checker of the connection that was made last, unless it knows. */
  #announce: (from: SseSubscription) => void = () => {};

  constructor(options: ReaderOptions) {
    this.#options = options;
  }

  /** What `Last-Event-ID` would say now; null before the broker gave a position, and again after a refusal. */
  get cursor(): string | null {
    return this.#subscription?.lastEventId || this.#asked;
  }

  /**
   * Connects where it stands. Undefined if the broker refused plainly; the refusal is then recorded and judged, but for a 503. With
   * `cutAfterBytes` the subscription may come back broken already, even before its head.
   */
  async connect(
    more: Pick<SubscribeOptions, 'cutAfterBytes' | 'onEvent'> = {},
  ): Promise<SseSubscription | undefined> {
    const { port, stream, checker, start = 'earliest' } = this.#options;
    const asked = this.cursor;
    // It may have been given a position and then no event: that is where it comes back from.
    if (this.#subscription?.lastEventId) this.#announce(this.#subscription);
    this.#connectionCount++;
    const connection = this.#connection;
    this.#asked = asked;
    this.#subscription = undefined;
    checker.observe({ kind: 'asked', by: connection, stream });
    let announced = false;
    const announce = (from: SseSubscription) => {
      if (!announced) this.#observeConnected(connection, asked, from);
      announced = true;
    };
    this.#announce = announce;

    const subscription = await SseSubscription.ask(port, stream, {
      ...(asked === null ? { cursor: start } : { lastEventId: asked }),
      keepEvents: false,
      cutAfterBytes: more.cutAfterBytes,
      onEvent: (event, from) => {
        announce(from);
        checker.observe({ kind: 'event', connection, ...positionOf(event.id), content: event.data });
        this.eventCount++;
        more.onEvent?.(event, from);
      },
    });
    // Not now, as a broker says that drains: nothing is known by that, and it asks again where it stands.
    if (subscription.status === 503) {
      subscription.cut();
      return undefined;
    }
    const isRefused = subscription.head !== undefined && subscription.status !== 200;
    if (isRefused && (await subscription.untilEnded()) !== 'broken') {
      await this.#observeRefused(asked, subscription);
      return undefined;
    }
    if (subscription.status === 200 && asked !== null) announce(subscription);
    this.#subscription = subscription;
    return subscription;
  }

  /**
   * Reads until it has the event `seq`, resuming as often as it takes: a machine too busy to read for ten seconds is
   * cut off like any reader that stalls.
   */
  async catchUp(seq: number): Promise<void> {
    for (let attempt = 1; attempt <= CATCH_UP_ATTEMPTS_MAX; attempt++) {
      const subscription = await this.connect();
      if (subscription === undefined) continue;
      const hasAll = () => this.cursor !== null && seqOf(this.cursor) >= seq;
      await subscription.until(`the end or seq ${seq}`, () => subscription.ending !== undefined || hasAll());
      subscription.cut();
      if (hasAll()) {
        this.caughtUp();
        return;
      }
    }
    assert.fail(`${this.#options.name} did not get to ${seq} in ${CATCH_UP_ATTEMPTS_MAX} attempts`);
  }

  /** Says to the checker that nothing more is owed: whatever was acknowledged so far must have come. */
  caughtUp(): void {
    this.#options.checker.observe({ kind: 'caught-up', connection: this.#connection });
  }

  get #connection(): string {
    return `${this.#options.name}#${this.#connectionCount}`;
  }

  #observeConnected(connection: string, asked: string | null, from: SseSubscription): void {
    const after = asked ?? from.idsWithoutEvent[0];
    assert.ok(after !== undefined, 'an event came before the priming frame');
    const { stream, name: reader, checker, severalServers = false } = this.#options;
    const epoch = from.header('gapless-epoch');
    assert.ok(epoch !== undefined, 'no Gapless-Epoch');
    const floor = Number(from.header('gapless-floor'));
    const head = Number(from.header('gapless-head'));
    const place = { stream, epoch, after: positionOf(after).seq, joined: asked === null };
    const positions = severalServers ? {} : { floor, head };
    checker.observe({ kind: 'connected', connection, reader, ...place, ...positions });
  }

  async #observeRefused(asked: string | null, subscription: SseSubscription): Promise<void> {
    const { stream, name: reader, checker } = this.#options;
    const answer = await subscription.refusal();
    assert.equal(answer.status, 410, `${reader} was answered ${answer.status}: ${answer.text}`);
    const problem = answer.json<Problem>();
    assert.equal(problem.cursor, asked, 'the refusal names another cursor than the one asked for');
    const { reason = '', epoch = null, floor = 0, head = 0 } = problem;
    const cursor = positionOf(problem.cursor ?? '');
    const connection = this.#connection;
    checker.observe({ kind: 'refused', connection, reader, stream, reason, cursor, epoch, floor, head });
    this.refusals.push(problem);
    this.#asked = null;
  }
}
