import { GaplessClient, GaplessError, type Publisher, type RawEvent } from '../client/client.js';
import { isRefusal } from '../client/client-error.js';

export interface SessionLogOptions {
  readonly eventsMax: number;
  readonly bytesMax: number;
  readonly ttlMs: number;
  readonly replayTimeoutMs: number;
}

/** Connections in a row on which a read may get nothing. */
const READ_ATTEMPTS_MAX = 3;
/** Messages that wait for the broker; one more is refused with `queue_full`. */
const QUEUE_MESSAGES_MAX = 10_000;

/** A message that is not known to be in the stream yet. */
interface Entry {
  readonly message: object;
  readonly type: string;
  readonly resolve: (cursor: string) => void;
  readonly reject: (error: unknown) => void;
}

/**
 * One session's stream at a broker, written to by one process at a time. The broker may have forgotten it, for it was not
 * used for its time to live, or for it lost everything: then it is made anew, and what waits goes there, in its order.
 */
export class SessionLog {
  readonly #client: GaplessClient;
  readonly #name: string;
  readonly #options: SessionLogOptions;
  /** Oldest first. */
  readonly #queue: Entry[] = [];
  /** Null while the stream is made. A publisher is of one stream: to another its count means nothing. */
  #publisher: Publisher | null = null;
  #opening: Promise<void> | null = null;
  #usedAtMs = Number.NEGATIVE_INFINITY;

  constructor(client: GaplessClient, name: string, options: SessionLogOptions) {
    this.#client = client;
    this.#name = name;
    this.#options = options;
  }

  /**
   * Appends after all that was given before. Promises resolve in that order, each with the cursor of its event.
   *
   * @throws {GaplessError} what a publisher throws: after `outcome_unknown` nothing can follow, and the session is over.
   */
  append(message: object, type: string): Promise<string> {
    return new Promise((resolve, reject) => {
      if (this.#queue.length >= QUEUE_MESSAGES_MAX) {
        throw new GaplessError('queue_full', 'more messages wait for the broker than may');
      }
      const entry = { message, type, resolve, reject };
      this.#queue.push(entry);
      const publisher = this.#use();
      if (publisher !== null) this.#publish(publisher, entry);
    });
  }

  /** The cursor of the newest event. @throws {GaplessError} `stream_not_found` when it was deleted just now. */
  async head(): Promise<string> {
    if (this.#use() === null) await this.#opening;
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
    await this.#publisher?.flush().catch(() => undefined);
    await this.#client.deleteStream(this.#name).catch((error: unknown) => {
      if (!isRefusal(error, 'stream_not_found')) throw error;
    });
  }

  /** The publisher; null while there is none, and then there will be one, or what waits is refused. */
  #use(): Publisher | null {
    const now = Date.now();
    const { ttlMs } = this.#options;
    // It would not be missed: the next event would make another, which is kept by the broker's own rules.
    const mayBeGone = ttlMs !== 0 && now - this.#usedAtMs > ttlMs / 2;
    this.#usedAtMs = now;
    if (this.#publisher === null || mayBeGone) this.#open();
    return this.#publisher;
  }

  #open(): void {
    const before = this.#publisher;
    this.#publisher = null;
    this.#opening ??= this.#reopen(before).finally(() => {
      this.#opening = null;
    });
    // Who waits in the queue is told; who waits for the opening itself is as well.
    this.#opening.catch(() => undefined);
  }

  async #reopen(before: Publisher | null): Promise<void> {
    try {
      // What was on its way is in the stream, or is refused and stays in the queue.
      await before?.flush().catch(() => undefined);
      await this.#create();
    } catch (error) {
      for (const { reject } of this.#queue.splice(0)) reject(error);
      throw error;
    }
    const publisher = this.#client.publisher(this.#name);
    this.#publisher = publisher;
    for (const entry of this.#queue) this.#publish(publisher, entry);
  }

  #publish(publisher: Publisher, entry: Entry): void {
    publisher.publish(entry.message, { type: entry.type }).then(
      (cursor) => {
        this.#settled(entry);
        entry.resolve(cursor);
      },
      (error: unknown) => {
        // The stream is another than the one that was published to.
        if (isRefusal(error, 'producer_gap')) return this.#publisher === publisher ? this.#open() : undefined;
        this.#settled(entry);
        entry.reject(error);
      },
    );
  }

  #settled(entry: Entry): void {
    this.#queue.splice(this.#queue.indexOf(entry), 1);
  }

  async #create(): Promise<void> {
    const { eventsMax: events, bytesMax: bytes, ttlMs } = this.#options;
    const config = { retention: { events, bytes }, ttlMs };
    try {
      await this.#client.createStream(this.#name, config);
    } catch (error) {
      if (!isRefusal(error, 'config_conflict')) throw error;
      // Made by a process with other limits, it stays. Made by a publish that was refused then, it is of no use.
      const state = await this.#client.state(this.#name);
      if (state === null || state.head > 0) return;
      await this.#client.deleteStream(this.#name);
      await this.#client.createStream(this.#name, config);
    }
  }
}
