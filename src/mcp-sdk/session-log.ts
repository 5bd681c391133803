import {
  GaplessClient,
  GaplessError,
  type Publisher,
  type RawEvent,
  type StreamConfig,
} from '../client/client.js';

export interface SessionLogOptions {
  readonly eventsMax: number;
  readonly bytesMax: number;
  readonly ttlMs: number;
  readonly replayTimeoutMs: number;
}

/** Connections in a row on which a read may get nothing. */
const READ_ATTEMPTS_MAX = 3;

/** One session's stream at a broker, written to by one process at a time. */
export class SessionLog {
  readonly #client: GaplessClient;
  readonly #name: string;
  readonly #options: SessionLogOptions;
  readonly #publisher: Publisher;
  #opened: Promise<void> | null = null;
  #usedAtMs = 0;

  constructor(client: GaplessClient, name: string, options: SessionLogOptions) {
    this.#client = client;
    this.#name = name;
    this.#options = options;
    this.#publisher = client.publisher(name);
  }

  /**
   * Appends after all that was given before. Promises resolve in that order, each with the cursor of its event.
   *
   * @throws {GaplessError}
   */
  async append(message: object, type: string): Promise<string> {
    await this.#open();
    return this.#publisher.publish(message, { type });
  }

  /** The cursor of the newest event. @throws {GaplessError} `stream_not_found` when it was deleted just now. */
  async head(): Promise<string> {
    await this.#open();
    const state = await this.#client.state(this.#name);
    if (state === null) throw new GaplessError('stream_not_found', 'the session was deleted');
    return `${state.epoch}.${state.committed}`;
  }

  /** What lies between two cursors, the second included. @throws {ResumeUnavailableError} {@link GaplessError} */
  async *between(cursor: string, head: string): AsyncGenerator<RawEvent & { data: string }, void, void> {
    if (cursor === head) return;
    const signal = AbortSignal.timeout(this.#options.replayTimeoutMs);
    const options = { cursor, signal, attemptsMax: READ_ATTEMPTS_MAX };
    for await (const event of this.#client.subscribe(this.#name, options)) {
      yield event;
      if (event.id === head) return;
    }
  }

  async delete(): Promise<void> {
    await this.#publisher.flush().catch(() => undefined);
    await this.#client.deleteStream(this.#name).catch((error: unknown) => {
      if (!isRefusal(error, 'stream_not_found')) throw error;
    });
  }

  /**
   * Makes the stream. Not once only: the broker forgets one that was not used for its time to live, and the next event
   * would make another by itself, which is kept by other rules.
   */
  #open(): Promise<void> {
    const now = Date.now();
    const { ttlMs } = this.#options;
    const mayBeGone = ttlMs !== 0 && now - this.#usedAtMs > ttlMs / 2;
    this.#usedAtMs = now;
    if (this.#opened === null || mayBeGone) {
      const opening = this.#create();
      // The next use tries again.
      opening.catch(() => {
        if (this.#opened === opening) this.#opened = null;
      });
      this.#opened = opening;
    }
    return this.#opened;
  }

  async #create(): Promise<void> {
    const { eventsMax: events, bytesMax: bytes, ttlMs } = this.#options;
    try {
      await this.#client.createStream(this.#name, {
        retention: { events, bytes },
        ttlMs,
      } satisfies StreamConfig);
    } catch (error) {
      // Made by a process with other limits: it stays as it is.
      if (!isRefusal(error, 'config_conflict')) throw error;
    }
  }
}

function isRefusal(error: unknown, code: string): boolean {
  return error instanceof GaplessError && error.code === code;
}
