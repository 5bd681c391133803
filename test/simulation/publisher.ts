import type { Connection, ResponseHead } from './connection.js';
import type { World } from './world.js';

interface Attempt {
  readonly publish: string;
  readonly contents: readonly string[];
}

interface Answer {
  readonly epoch: string;
  readonly first: number;
  readonly last: number;
}

/** A publisher that hears nothing gives up after so long. */
const PATIENCE_MS = 15_000;
const BURST_PAUSE_MS_MAX = 2;
const EVENT_TYPES = [null, 'a', 'b'];

/**
 * Publishes batches one after the other, each on some edge. When it does not hear the outcome it publishes anew, with
 * other contents: without producer ids each attempt is a publish of its own, that may be there once or not at all.
 */
export class SimulatedPublisher {
  /** Whether it has done all that it was to do, and waits for nothing. */
  isIdle = false;
  #pauseMsMax: number;
  readonly #world: World;
  readonly #name: string;
  #publishes = 0;
  #events = 0;
  #left = Number.POSITIVE_INFINITY;
  #lastCursor: string | null = null;

  constructor(world: World, name: string) {
    this.#world = world;
    this.#name = name;
    this.#pauseMsMax = 2 * world.options.publishPauseMs;
    this.#later();
  }

  /** It publishes so many times more, fast, and is then idle. */
  burst(publishes: number): void {
    this.#left = publishes;
    this.#pauseMsMax = BURST_PAUSE_MS_MAX;
    if (this.isIdle) this.#later();
    this.isIdle = false;
  }

  #later(): void {
    this.#world.after(this.#world.prng.below(this.#pauseMsMax + 1), () => {
      if (this.#left-- > 0) this.#publish();
      else this.isIdle = true;
    });
  }

  #publish(): void {
    const { prng, options, streams, judge } = this.#world;
    const stream = prng.pick(streams);
    const count = prng.chance(0.5) ? 1 : prng.between(1, options.batchEventsMax);
    const attempt: Attempt = {
      publish: `${this.#name}/${++this.#publishes}`,
      contents: Array.from({ length: count }, () => this.#content()),
    };
    const type = prng.pick(EVENT_TYPES);
    const isText = count === 1 && prng.chance(0.7);
    const body = isText ? (attempt.contents[0] as string) : JSON.stringify(attempt.contents.map(asEvent));
    const headers: Record<string, string> = {
      'content-type': isText ? 'text/plain' : 'application/vnd.gapless.batch+json',
      ...(type === null ? {} : { 'gapless-event': type }),
    };
    if (this.#lastCursor !== null && prng.chance(0.05)) headers['gapless-if-head'] = this.#lastCursor;
    const types = attempt.contents.map(() => type ?? 'message');
    judge.observe({ kind: 'publish-begun', stream, types, ...attempt });
    this.#send(attempt, { method: 'post', path: `/v1/streams/${stream}`, headers, body: Buffer.from(body) });
  }

  #content(): string {
    const { prng, options } = this.#world;
    const unique = `${this.#name}:${++this.#events}:`;
    const filling = prng.chance(0.8) ? '.'.repeat(prng.below(options.eventBytesMax)) : 'ä\n\nb\n';
    return unique + filling;
  }

  #send(attempt: Attempt, request: Parameters<World['request']>[0]): void {
    const { prng, options } = this.#world;
    let head: ResponseHead | null = null;
    const parts: Uint8Array[] = [];
    let isOver = false;
    const over = (): void => {
      if (isOver) return;
      isOver = true;
      this.#later();
    };
    const connection: Connection | null = this.#world.request(request, {
      head: (received) => {
        head = received;
      },
      bytes: (chunk) => parts.push(chunk),
      ended: (how) => {
        if (how === 'end' && head !== null) this.#answered(attempt, head, Buffer.concat(parts).toString());
        over();
      },
    });
    if (connection === null) return over();
    const isLost = this.#world.happens(options.lostAnswerChance);
    this.#world.after(isLost ? prng.below(300) : PATIENCE_MS, () => {
      if (isOver) return;
      connection.abandon(!this.#world.happens(options.halfOpenChance));
      over();
    });
  }

  #answered({ publish }: Attempt, head: ResponseHead, body: string): void {
    const { judge, options } = this.#world;
    if (head.status === 200) {
      const { epoch, first, last } = JSON.parse(body) as Answer;
      judge.observe({ kind: 'publish-acked', publish, epoch, first, last });
      this.#lastCursor = `${epoch}.${last}`;
      return;
    }
    const { code } = JSON.parse(body) as { code: string };
    if (head.status >= 500 && head.status !== 503 && head.status !== 507)
      judge.problem(`${head.status} ${code}`);
    // Nobody knows: they may be there later, or have been there until the stream was deleted (contract 3.3).
    const isUnknown = code === 'commit_unknown' || (options.durable && code === 'stream_not_found');
    if (!isUnknown) judge.observe({ kind: 'publish-refused', publish });
  }
}

function asEvent(data: string): { data: string } {
  return { data };
}
