/**
 * Follows a stream over any number of connections: each event once, in order, without a gap; or an error that says why
 * that is impossible.
 */

import { delayMs, retryAfterMs, sleep } from './backoff.js';
import { errorOf, GaplessError, StreamDeletedError } from './client-error.js';
import { type Connection, streamPath } from './connection.js';
import { type Decode, fromBase64, type StreamEvent } from './event-data.js';
import { Position } from './position.js';
import { isRetryable } from './retryable.js';
import { SseDecoder, type SseFrame } from './sse-decoder.js';

export interface SubscribeOptions<T> {
  /** The last event seen, or where to begin: `earliest`, or `latest`, which is only what comes from now on. */
  readonly cursor?: string | undefined;
  /** Only events of these types (contract 4.9). */
  readonly types?: readonly string[] | undefined;
  /** What becomes of an event's data; the text as it is when absent. */
  readonly decode: Decode<T>;
  /** Ends the iteration with its reason. */
  readonly signal?: AbortSignal | undefined;
  /** A connection that brings nothing for so long is broken; the server says something every 15 s. */
  readonly idleTimeoutMs?: number | undefined;
  /** Before the first attempt to come back; after each that fails it is doubled, up to 30 s. */
  readonly retryMs?: number | undefined;
  /** Attempts in a row that bring nothing, before the last error is thrown. Without it there is no end. */
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
/** Connections in a row that bring what does not follow, before it is taken for how things are. */
const VIOLATIONS_MAX = 3;

/** What a connection came to; a break is a {@link GaplessError} that another connection may cure. */
type End = 'closed' | GaplessError;

export class Subscription<T> implements AsyncIterable<StreamEvent<T>> {
  readonly #connection: Connection;
  readonly #name: string;
  readonly #options: SubscribeOptions<T>;
  readonly #position: Position;
  /** `earliest` or `latest`, while there is no position. */
  readonly #start: string;
  /** Attempts and violations in a row, since an event came. */
  #failures = 0;
  #violations = 0;
  /** What the server asked for on the last connection. */
  #askedMs: number | null = null;

  constructor(connection: Connection, name: string, options: SubscribeOptions<T>) {
    const { cursor = 'latest', types } = options;
    this.#connection = connection;
    this.#name = name;
    this.#options = options;
    this.#start = cursor;
    const isWord = cursor === 'latest' || cursor === 'earliest';
    this.#position = new Position(isWord ? null : cursor, { isFiltered: types !== undefined });
  }

  /** The last event that was handed over, or what was passed over since; null before there is a position. */
  get cursor(): string | null {
    return this.#position.cursor;
  }

  /**
   * The events, one at a time: no more is read while one is dealt with, so that a slow program slows its own
   * connection and nothing else. Ends when the stream was closed and all of it was handed over.
   *
   * @throws {ResumeUnavailableError} when the next event is gone.
   * @throws {StreamDeletedError}
   * @throws {GaplessError} for what trying again cannot cure.
   */
  async *[Symbol.asyncIterator](): AsyncGenerator<StreamEvent<T>, void, void> {
    for (;;) {
      const end = yield* this.#connect();
      if (end === 'closed') return;
      await this.#wait(end);
    }
  }

  async *#connect(): AsyncGenerator<StreamEvent<T>, End, void> {
    const { signal, idleTimeoutMs = IDLE_TIMEOUT_MS } = this.#options;
    const ending = new AbortController();
    const idle = new IdleTimer(ending, idleTimeoutMs);
    const abort = (): void => ending.abort(signal?.reason);
    signal?.throwIfAborted();
    signal?.addEventListener('abort', abort);
    try {
      this.#options.onStatus?.({ state: 'connecting' });
      const response = await idle.during(this.#request(ending.signal));
      if (response.status === 204) return 'closed';
      if (response.status !== 200 || response.body === null) return await this.#refused(response);
      this.#askedMs = null;
      this.#options.onStatus?.({ state: 'open' });
      return yield* this.#read(response.body.getReader(), idle);
    } catch (error) {
      signal?.throwIfAborted();
      if (error instanceof GaplessError && error.code === 'unreachable') return error;
      if (ending.signal.aborted) return new GaplessError('unreachable', 'nothing came for too long');
      throw error;
    } finally {
      signal?.removeEventListener('abort', abort);
      // Also where the caller leaves in the middle: nothing may hold the socket.
      ending.abort();
    }
  }

  #request(signal: AbortSignal): Promise<Response> {
    const { types } = this.#options;
    return this.#connection.request(streamPath(this.#name), {
      query: { types: types?.join(',') },
      headers: { Accept: 'text/event-stream', 'Last-Event-ID': this.#position.cursor ?? this.#start },
      signal,
    });
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
  ): AsyncGenerator<StreamEvent<T>, End, void> {
    const decoder = new SseDecoder();
    for (;;) {
      const chunk = await idle.during(reader.read()).catch((cause: unknown) => {
        throw new GaplessError('unreachable', 'the connection broke', { cause });
      });
      if (chunk.done) return new GaplessError('unreachable', 'the connection ended');
      for (const frame of decoder.push(chunk.value)) {
        this.#askedMs = decoder.retryMs;
        const next = this.#accept(frame);
        if (next === 'closed' || next instanceof GaplessError) return next;
        if (next !== null) yield next;
      }
      this.#askedMs = decoder.retryMs;
    }
  }

  /** What a frame comes to; null when it only moved the position. */
  #accept(frame: SseFrame): StreamEvent<T> | End | null {
    const { id, type, data } = frame;
    if (data === null) return id === null || this.#position.moveTo(id) ? null : this.#violated(id);
    if (id === null && type === 'stream_closed') {
      const { cursor } = JSON.parse(data) as { cursor: unknown };
      return this.#position.isEnd(cursor) ? 'closed' : this.#violated(`the end at ${cursor}`);
    }
    if (id === null && type === 'stream_deleted') throw new StreamDeletedError(this.cursor);
    if (!this.#position.moveToEvent(id)) return this.#violated(id);
    this.#failures = 0;
    this.#violations = 0;
    const event = { id: id ?? '', type: type === '' ? 'message' : type };
    const decoded = this.#options.decode({ ...event, data: frame.isBinary ? fromBase64(data) : data });
    return { ...event, data: decoded };
  }

  /** What came does not follow. It is not handed over; another connection begins where this one was right. */
  #violated(got: string | null): GaplessError {
    const error = new GaplessError(
      'not_contiguous',
      `after ${this.cursor} came ${got ?? 'an event without id'}`,
    );
    if (++this.#violations === VIOLATIONS_MAX) throw error;
    return error;
  }

  async #wait(error: GaplessError): Promise<void> {
    const { retryMs = RETRY_MS, attemptsMax = Number.POSITIVE_INFINITY, signal, onStatus } = this.#options;
    const delay = delayMs(this.#failures, retryMs, this.#askedMs, Math.random());
    if (++this.#failures >= attemptsMax) throw error;
    onStatus?.({ state: 'waiting', delayMs: delay, error });
    await sleep(delay, signal);
  }
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
    const timer = setTimeout(() => this.#ending.abort(), this.#timeoutMs);
    try {
      return await promise;
    } finally {
      clearTimeout(timer);
    }
  }
}
