import assert from 'node:assert/strict';
import { setTimeout as delay } from 'node:timers/promises';
import { positionOf, range } from '../support/cursor.js';
import { eventually, withDeadline } from '../support/deadline.js';
import { GapChecker } from '../support/gap-checker.js';
import { MEDIA_TYPES, type PageEvent, type Problem, publishRequest } from '../support/gapless-client.js';
import { HttpConnection, type HttpRequest, type HttpResponse } from '../support/http.js';
import type { Prng } from '../support/prng.js';
import { type Answered, answeredOf, producerRequest } from '../support/producer.js';

/** On each stream: producers with one publish on its way, with several, and clients that use keys. */
const PUBLISHERS = { closed: 2, wide: 2, keyed: 3 } as const;
/** Below the window that is remembered, for what came before the broken connections may be asked for again. */
const WIDTH = 4;
const EVENTS_MAX = 20;
const PAUSE_MS = 5;
/** Nothing was appended, or nobody knows: the same request is sent again. */
const RETRIED = ['producer_gap', 'backpressure', 'commit_unknown', 'draining'];

type Kind = keyof typeof PUBLISHERS;

/**
 * Publishers who never give up: what was not answered is sent again, the same, until it is, over connections of which any
 * edge may get any. The checker hears of each publish once.
 */
export class RetryingCrew {
  readonly checker = new GapChecker();
  answers = 0;
  duplicates = 0;
  /** Publishes that were cut off from their answer. */
  cuts = 0;

  readonly #prng: Prng;
  readonly #port: number;
  readonly #streams: readonly string[];
  readonly #publishers: Readonly<Record<Kind, number>>;
  readonly #retried: ReadonlySet<string>;
  readonly #eventCounts = new Map<string, number>();
  #isOver = false;
  #isAbandoned = false;
  #work: Promise<unknown> = Promise.resolve();

  constructor(options: {
    prng: Prng;
    port: number;
    streams: readonly string[];
    publishers?: Partial<Record<Kind, number>>;
    /** Codes of refusals after which they try again as well. */
    retried?: readonly string[];
  }) {
    this.#prng = options.prng;
    this.#port = options.port;
    this.#streams = options.streams;
    this.#publishers = { ...PUBLISHERS, ...options.publishers };
    this.#retried = new Set([...RETRIED, ...(options.retried ?? [])]);
  }

  begin(): void {
    const publishers = this.#streams.flatMap((stream) =>
      Object.entries(this.#publishers).flatMap(([kind, count]) =>
        range(1, count).map((index) => this.#publish(kind as Kind, stream, `${kind}-${index}`)),
      ),
    );
    this.#work = Promise.all(publishers);
    // Whoever waits reports it; until then nothing is unhandled.
    this.#work.catch(() => this.abandon());
  }

  /** Resolves after so many more answers; fails as soon as a publisher does. */
  async untilAnswers(count: number): Promise<void> {
    const wanted = this.answers + count;
    const answered = eventually(`${count} answers`, () => this.answers >= wanted);
    await Promise.race([answered, this.#work.then(() => assert.fail('the crew ended by itself'))]);
  }

  /** Everybody is answered what is on its way, and stops. */
  async end(): Promise<void> {
    this.#isOver = true;
    await withDeadline('the last answers', this.#work);
  }

  /** Nobody waits for an answer any more, for the test is over. */
  abandon(): void {
    this.#isOver = true;
    this.#isAbandoned = true;
  }

  /** Events that were published, each counted once. */
  eventCount(stream: string): number {
    return this.#eventCounts.get(stream) ?? 0;
  }

  /** What a reader of the whole stream has seen. */
  observeAll(stream: string, events: readonly PageEvent[]): void {
    const [first] = events;
    assert.ok(first !== undefined, `${stream} is empty`);
    const { epoch } = positionOf(first.id);
    const connection = `whole/${stream}`;
    this.checker.observe({ kind: 'connected', connection, reader: connection, stream, epoch, after: 0 });
    for (const { id, data } of events) {
      this.checker.observe({ kind: 'event', connection, ...positionOf(id), content: data });
    }
    this.checker.observe({ kind: 'caught-up', connection });
  }

  async #publish(kind: Kind, stream: string, name: string): Promise<void> {
    const lanes = kind === 'wide' ? WIDTH : 1;
    let seq = 0;
    await Promise.all(
      range(1, lanes).map(async () => {
        const lane = new Lane(this.#port, () => this.cuts++);
        while (!this.#isOver) await this.#publishOne(lane, { kind, stream, name, seq: seq++ });
        lane.close();
      }),
    );
  }

  async #publishOne(
    lane: Lane,
    one: { kind: Kind; stream: string; name: string; seq: number },
  ): Promise<void> {
    const { kind, stream, name, seq } = one;
    const publish = `${stream}/${name}/${seq}`;
    const lines = range(1, this.#prng.between(1, EVENTS_MAX)).map((index) => `${publish}:${index}`);
    const asked =
      kind === 'keyed'
        ? publishRequest(stream, lines.join('\n'), MEDIA_TYPES.ndjson, {
            'Idempotency-Key': `${name} ${seq}`,
          })
        : producerRequest({ stream, id: name, epoch: 0, seq, lines });
    this.checker.observe({ kind: 'publish-begun', publish, stream, contents: lines });
    const { isDuplicate, ...published } = await this.#untilAnswered(lane, asked);
    this.checker.observe({ kind: 'publish-acked', publish, ...published });
    this.#eventCounts.set(stream, this.eventCount(stream) + lines.length);
    this.answers++;
    if (isDuplicate) this.duplicates++;
  }

  async #untilAnswered(lane: Lane, asked: HttpRequest): Promise<Answered> {
    for (;;) {
      assert.ok(!this.#isAbandoned, 'the test was over before the answer');
      const response = await lane.ask(asked);
      if (response?.status === 200) return answeredOf(response);
      if (response !== null) {
        const { code } = response.json<Problem>();
        assert.ok(this.#retried.has(code), `${response.status}: ${response.text}`);
      }
      await delay(PAUSE_MS);
    }
  }
}

/** One connection at a time, made anew when it is gone. */
class Lane {
  readonly #port: number;
  readonly #cut: () => void;
  #connection: HttpConnection | null = null;

  constructor(port: number, cut: () => void) {
    this.#port = port;
    this.#cut = cut;
  }

  /** Null: it was not sent, or nobody knows what became of it, which counts as cut. */
  async ask(asked: HttpRequest): Promise<HttpResponse | null> {
    const connection = this.#connection ?? (await HttpConnection.open(this.#port).catch(() => null));
    this.#connection = connection;
    if (connection === null) return null;
    try {
      return await connection.request(asked);
    } catch {
      this.#cut();
      this.close();
      return null;
    }
  }

  close(): void {
    this.#connection?.destroy();
    this.#connection = null;
  }
}
