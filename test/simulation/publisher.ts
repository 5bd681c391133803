import type { Connection, ResponseHead } from './connection.js';
import type { Request } from './http-library.js';
import { KeyClaim, ProducerClaim, type PublishClaim } from './publish-claim.js';
import type { World } from './world.js';

interface Publish {
  readonly publish: string;
  readonly stream: string;
  readonly contents: readonly string[];
}

/** What came of one attempt. What is refused does not count (contract 3.4); `unknown`: it may have been appended, or may be yet. */
type Ending = 'appended' | 'refused' | 'forgotten' | 'unknown';

/** The broker does not know the producer as it knows itself: it begins again. */
const FORGOTTEN = ['producer_gap', 'producer_fenced', 'publish_forgotten'];

interface Answer {
  readonly epoch: string;
  readonly first: number;
  readonly last: number;
}

/** A publisher that hears nothing gives up after so long. */
const PATIENCE_MS = 15_000;
const BURST_PAUSE_MS_MAX = 2;
/** Attempts at one publish, where it says which one it is. */
const ATTEMPTS_MAX = 8;
const RETRY_MS_MAX = 200;
const EVENT_TYPES = [null, 'a', 'b'];

/**
 * Publishes batches one after the other, each on some edge. One that says which publish it is (contract 3.4) sends it
 * again until it hears the outcome, on whatever edge, and while the first may still be on its way. Another publishes anew
 * then, with other contents: each attempt is a publish of its own, that may be there once or not at all.
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
  readonly #claim: PublishClaim | null;

  constructor(world: World, name: string) {
    this.#world = world;
    this.#name = name;
    this.#pauseMsMax = 2 * world.options.publishPauseMs;
    this.#claim = this.#drawClaim();
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

  /**
   * The broker forgets who published with the stream, and in memory mode, the only one that has producers so far, the
   * stream with the process: where streams begin anew, a publish that is sent again may stand in two epochs.
   */
  #drawClaim(): PublishClaim | null {
    const { prng, options } = this.#world;
    const mayBeginAnew = options.crashEveryMs > 0 || options.deleteChance > 0 || options.ttlMs > 0;
    if (options.durable || mayBeginAnew || !prng.chance(options.claimChance)) return null;
    return prng.chance(0.7) ? new ProducerClaim(this.#name) : new KeyClaim(this.#name);
  }

  #publish(): void {
    const { prng, options, streams, judge } = this.#world;
    const stream = prng.pick(streams);
    const count = prng.chance(0.5) ? 1 : prng.between(1, options.batchEventsMax);
    const publish: Publish = {
      publish: `${this.#name}/${++this.#publishes}`,
      stream,
      contents: Array.from({ length: count }, () => this.#content()),
    };
    const type = prng.pick(EVENT_TYPES);
    const isText = count === 1 && prng.chance(0.7);
    const body = isText ? (publish.contents[0] as string) : JSON.stringify(publish.contents.map(asEvent));
    const headers: Record<string, string> = {
      'content-type': isText ? 'text/plain' : 'application/vnd.gapless.batch+json',
      ...(type === null ? {} : { 'gapless-event': type }),
      ...this.#claim?.headers(stream),
    };
    if (this.#lastCursor !== null && prng.chance(0.05)) headers['gapless-if-head'] = this.#lastCursor;
    const types = publish.contents.map(() => type ?? 'message');
    judge.observe({ kind: 'publish-begun', types, ...publish });
    this.#attempt(publish, {
      method: 'post',
      path: `/v1/streams/${stream}`,
      headers,
      body: Buffer.from(body),
    });
  }

  #content(): string {
    const { prng, options } = this.#world;
    const unique = `${this.#name}:${++this.#events}:`;
    const filling = prng.chance(0.8) ? '.'.repeat(prng.below(options.eventBytesMax)) : 'ä\n\nb\n';
    return unique + filling;
  }

  #attempt(publish: Publish, request: Request, attempts = 1): void {
    this.#send(publish, request, attempts === 1, (ending) => {
      const claim = this.#claim;
      if (ending === 'appended') claim?.appended(publish.stream);
      else if (claim !== null && ending === 'unknown' && attempts < ATTEMPTS_MAX) {
        this.#world.after(this.#world.prng.below(RETRY_MS_MAX), () =>
          this.#attempt(publish, request, attempts + 1),
        );
        return;
      } else if (ending !== 'refused' || attempts > 1) claim?.lost(publish.stream);
      this.#later();
    });
  }

  #send(publish: Publish, request: Request, isFirst: boolean, ended: (ending: Ending) => void): void {
    const { prng, options } = this.#world;
    let head: ResponseHead | null = null;
    const parts: Uint8Array[] = [];
    let isOver = false;
    const over = (ending: Ending): void => {
      if (isOver) return;
      isOver = true;
      ended(ending);
    };
    const connection: Connection | null = this.#world.request(request, {
      head: (received) => {
        head = received;
      },
      bytes: (chunk) => parts.push(chunk),
      ended: (how) => {
        if (isOver) return;
        const isWhole = how === 'end' && head !== null;
        over(isWhole ? this.#answered(publish, head as unknown as ResponseHead, parts, isFirst) : 'unknown');
      },
    });
    if (connection === null) return over('unknown');
    const isLost = this.#world.happens(options.lostAnswerChance);
    this.#world.after(isLost ? prng.below(300) : PATIENCE_MS, () => {
      if (isOver) return;
      connection.abandon(!this.#world.happens(options.halfOpenChance));
      over('unknown');
    });
  }

  /** @param isFirst no attempt before this one may have been appended. */
  #answered(
    { publish }: Publish,
    head: ResponseHead,
    parts: readonly Uint8Array[],
    isFirst: boolean,
  ): Ending {
    const { judge, options } = this.#world;
    const body = Buffer.concat(parts).toString();
    if (head.status === 200) {
      const { epoch, first, last } = JSON.parse(body) as Answer;
      judge.observe({ kind: 'publish-acked', publish, epoch, first, last });
      this.#lastCursor = `${epoch}.${last}`;
      return 'appended';
    }
    const { code } = JSON.parse(body) as { code: string };
    if (head.status >= 500 && head.status !== 503 && head.status !== 507)
      judge.problem(`${head.status} ${code}`);
    // Nobody knows: they may be there later, or have been there until the stream was deleted (contract 3.3).
    if (code === 'commit_unknown' || (options.durable && code === 'stream_not_found')) return 'unknown';
    // After an attempt whose outcome is not known, a refusal says that of its own attempt only.
    if (isFirst) judge.observe({ kind: 'publish-refused', publish });
    return FORGOTTEN.includes(code) ? 'forgotten' : 'refused';
  }
}

function asEvent(data: string): { data: string } {
  return { data };
}
