/**
 * Follows a stream over any number of connections: each event once, in order, without a gap; or an error that says why
 * that is impossible.
 */

import { refuseUnsendable, StreamDeletedError } from './client-error.js';
import { type Connection, streamPath } from './connection.js';
import { type Decode, fromBase64, type StreamEvent } from './event-data.js';
import { type Accepted, Following, type FollowOptions } from './following.js';
import { Position } from './position.js';
import type { SseFrame } from './sse-decoder.js';

export interface SubscribeOptions<T> extends FollowOptions {
  /** The last event seen, or where to begin: `earliest`, or `latest`, which is only what comes from now on. */
  readonly cursor?: string | undefined;
  /** What becomes of an event's data; the text as it is when absent. */
  readonly decode: Decode<T>;
}

export class Subscription<T> extends Following<StreamEvent<T>> {
  readonly #connection: Connection;
  readonly #name: string;
  readonly #options: SubscribeOptions<T>;
  readonly #position: Position;
  /** `earliest` or `latest`, while there is no position. */
  readonly #start: string;

  constructor(connection: Connection, name: string, options: SubscribeOptions<T>) {
    super(options);
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

  protected ask(signal: AbortSignal): Promise<Response> {
    refuseUnsendable(this.#options.cursor);
    return this.#connection.request(streamPath(this.#name), {
      query: { types: this.types },
      headers: { Accept: 'text/event-stream', 'Last-Event-ID': this.#position.cursor ?? this.#start },
      signal,
    });
  }

  protected accept({ id, type, data, isBinary }: SseFrame): Accepted<StreamEvent<T>> {
    if (data === null)
      return id === null || this.#position.moveTo(id) ? null : this.violated(id, this.cursor);
    if (id === null && type === 'stream_closed') {
      const { cursor } = JSON.parse(data) as { cursor: unknown };
      return this.#position.isEnd(cursor) ? 'closed' : this.violated(`the end at ${cursor}`, this.cursor);
    }
    if (id === null && type === 'stream_deleted') throw new StreamDeletedError(this.cursor);
    if (!this.#position.moveToEvent(id)) return this.violated(id, this.cursor);
    const event = { id: id ?? '', type: type === '' ? 'message' : type };
    const decoded = this.#options.decode({ ...event, data: isBinary ? fromBase64(data) : data });
    return { event: { ...event, data: decoded } };
  }
}
