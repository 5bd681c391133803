/**
 * What all subscriptions of the client do: they follow an event stream over any number of connections, wait before each
 * with jitter, and give up on what trying again cannot cure. What a frame means is left to the subclasses.
 */

import { leavable } from './abortable.js';
import { delayMs, retryAfterMs, sleep, TIMER_MS_MAX } from './backoff.js';
import { errorOf, GaplessError } from './client-error.js';
import { isRetryable } from './retryable.js';
import { SseDecoder, type SseFrame } from './sse-decoder.js';

/** Where an option says a value, that is what holds without it. */
export interface FollowOptions {
  /** Only events of these types (contract 4.9). */
  readonly types?: readonly string[] | undefined;
  /** Ends the iteration with its reason. */
  readonly signal?: AbortSignal | undefined;
  /** A connection that brings nothing for so long is broken, milliseconds; 45 s. The server says something every 15 s. */
  readonly idleTimeoutMs?: number | undefined;
  /** Time before the first attempt to come back, milliseconds; 1 s. After each that fails it is doubled, up to 30 s. */
  readonly retryMs?: number | undefined;
  /** Attempts in a row that bring nothing, not even a heartbeat, before the last error is thrown. Without it there is no end. */
  readonly attemptsMax?: number | undefined;
  /** Told how the connection is, for what a user sees of it. */
  readonly onStatus?: ((status: SubscriptionStatus) => void) | undefined;
}

export type SubscriptionStatus =
  | { readonly state: 'connecting' }
  | { readonly state: 'open' }
  /** The connection is gone, or could not be made; another is tried after `delayMs`. */
  | { readonly state: 'waiting'; readonly delayMs: number; readonly error: GaplessError };

const IDLE_TIMEOUT_MS = 45_000;
const RETRY_MS = 1000;
/** Connections in a row that bring an event which does not follow the last, before the iteration ends with that. */
const VIOLATIONS_MAX = 3;

/** What a connection came to; a break is a {@link GaplessError} that another connection may cure. */
export type End = 'closed' | GaplessError;

/** What a frame comes to. */
export type Accepted<E> =
  /** An event to hand over. */
  | { readonly event: E }
  | End
  /** It only moved the position. */
  | null;

export abstract class Following<E> implements AsyncIterable<E> {
  readonly #options: FollowOptions;
  /** Attempts in a row, since a connection brought something. */
  #failures = 0;
  /** In a row, since an event came. */
  #violations = 0;
  #isFollowed = false;
  /** What the server asked for on the last connection. */
  #askedMs: number | null = null;

  constructor(options: FollowOptions) {
    this.#options = options;
  }

  /** Where it is, as the server takes it; null before there is a position. */
  abstract get cursor(): string | null;

  /** The parameter for `types`. @throws {GaplessError} for a type that it cannot name (contract 4.9). */
  protected get types(): string | undefined {
    const { types } = this.#options;
    if (types?.some((type) => type.includes(',')))
      throw new GaplessError('invalid_event_type', 'a type with a comma cannot be filtered for');
    return types?.join(',');
  }

  /** Asks for the event stream from where it is. */
  protected abstract ask(signal: AbortSignal): Promise<Response>;

  /** @throws what ends the iteration. */
  protected abstract accept(frame: SseFrame): Accepted<E>;

  /**
   * The events, one at a time: no more is read while one is dealt with, so that a slow program slows its own
   * connection and nothing else. Ends when all that is followed was closed and handed over.
   *
   * @throws {ResumeUnavailableError} when the next event is gone.
   * @throws {StreamDeletedError}
   * @throws {GaplessError} for what trying again cannot cure.
   * @throws {TypeError} while somebody else iterates: there is one position, and each event is handed over once.
   */
  [Symbol.asyncIterator](): AsyncGenerator<E, void, void> {
    const ending = new AbortController();
    return leavable(this.#follow(ending), () => ending.abort());
  }

  /** What came does not follow. It is not handed over; another connection begins where this one was right. */
  protected violated(got: string | null, after: string | null): GaplessError {
    const error = new GaplessError('not_contiguous', `after ${after} came ${got ?? 'an event without id'}`);
    if (++this.#violations === VIOLATIONS_MAX) throw error;
    return error;
  }

  async *#follow(leaving: AbortController): AsyncGenerator<E, void, void> {
    const { signal } = this.#options;
    const abort = (): void => leaving.abort(signal?.reason);
    signal?.throwIfAborted();
    if (this.#isFollowed) throw new TypeError('the subscription is iterated already');
    this.#isFollowed = true;
    signal?.addEventListener('abort', abort);
    try {
      for (;;) {
        const end = yield* this.#connect(leaving.signal);
        if (end === 'closed') return;
        await this.#wait(end, leaving.signal);
      }
    } catch (error) {
      signal?.throwIfAborted();
      if (!leaving.signal.aborted) throw error;
    } finally {
      this.#isFollowed = false;
      signal?.removeEventListener('abort', abort);
    }
  }

  async *#connect(leaving: AbortSignal): AsyncGenerator<E, End, void> {
    const { idleTimeoutMs = IDLE_TIMEOUT_MS } = this.#options;
    const ending = new AbortController();
    const idle = new IdleTimer(ending, idleTimeoutMs);
    const abort = (): void => ending.abort(leaving.reason);
    leaving.addEventListener('abort', abort);
    try {
      this.#options.onStatus?.({ state: 'connecting' });
      const response = await idle.during(this.ask(ending.signal));
      if (response.status === 204) return 'closed';
      if (response.status !== 200 || response.body === null)
        return await idle.during(this.#refused(response));
      if (!isEventStream(response)) throw await notEventStream(response);
      this.#askedMs = null;
      this.#options.onStatus?.({ state: 'open' });
      return yield* this.#read(response.body.getReader(), idle, leaving);
    } catch (error) {
      leaving.throwIfAborted();
      if (error instanceof GaplessError && error.code === 'unreachable') return error;
      if (ending.signal.aborted) return new GaplessError('unreachable', 'nothing came for too long');
      throw error;
    } finally {
      leaving.removeEventListener('abort', abort);
      // Also where the caller leaves in the middle: nothing may hold the socket.
      ending.abort();
    }
  }

  async #refused(response: Response): Promise<GaplessError> {
    this.#askedMs = retryAfterMs(response.headers);
    const error = await errorOf(response);
    if (!isRetryable(error)) throw error;
    return error;
  }

  async *#read(
    reader: ReadableStreamDefaultReader<Uint8Array>,
    idle: IdleTimer,
    leaving: AbortSignal,
  ): AsyncGenerator<E, End, void> {
    const decoder = new SseDecoder();
    let isPrimed = false;
    for (;;) {
      const chunk = await idle.during(reader.read()).catch((cause: unknown) => {
        throw new GaplessError('unreachable', 'the connection broke', { cause });
      });
      if (chunk.done) return new GaplessError('unreachable', 'the connection ended');
      // A stream on which nothing happens has heartbeats: that its connection ends some day is no failure.
      if (isPrimed) this.#failures = 0;
      for (const frame of decoder.push(chunk.value)) {
        isPrimed = true;
        this.#askedMs = decoder.retryMs;
        const next = this.accept(frame);
        if (next === 'closed' || next instanceof GaplessError) return next;
        if (next === null) continue;
        this.#failures = 0;
        this.#violations = 0;
        yield next.event;
        // What else came in this chunk is not wanted any more.
        leaving.throwIfAborted();
      }
      this.#askedMs = decoder.retryMs;
    }
  }

  async #wait(error: GaplessError, leaving: AbortSignal): Promise<void> {
    const { retryMs = RETRY_MS, attemptsMax = Number.POSITIVE_INFINITY, onStatus } = this.#options;
    const delay = delayMs(this.#failures, retryMs, this.#askedMs, Math.random());
    if (++this.#failures >= attemptsMax) throw error;
    onStatus?.({ state: 'waiting', delayMs: delay, error });
    await sleep(delay, leaving);
  }
}

function isEventStream({ headers }: Response): boolean {
  return /^text\/event-stream\b/i.test(headers.get('content-type') ?? '');
}

/** What stands where the broker should, such as the page of a login, would be taken for a stream without events. */
async function notEventStream({ headers, status, body }: Response): Promise<GaplessError> {
  await body?.cancel();
  const type = headers.get('content-type') ?? 'nothing that it names';
  return new GaplessError('unexpected_answer', `the answer was ${type}, and no event stream`, { status });
}

/** Ends a connection that brings nothing, while somebody waits for it. */
class IdleTimer {
  readonly #ending: AbortController;
  readonly #timeoutMs: number;

  constructor(ending: AbortController, timeoutMs: number) {
    this.#ending = ending;
    this.#timeoutMs = timeoutMs;
  }

  async during<R>(promise: Promise<R>): Promise<R> {
    const timer = setTimeout(() => this.#ending.abort(), Math.min(this.#timeoutMs, TIMER_MS_MAX));
    try {
      return await promise;
    } finally {
      clearTimeout(timer);
    }
  }
}
