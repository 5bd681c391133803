/**
 * Follows several streams over one connection at a time (contract 4.10): each stream's events once, in order and without a
 * gap. Between streams there is no order.
 */

import { formatCursor } from '../core/cursor.js';
import { ResumeUnavailableError, StreamDeletedError } from './client-error.js';
import { type Connection, streamPath } from './connection.js';
import { fromBase64, type RawEvent, type StreamEvent } from './event-data.js';
import { type Accepted, Following, type FollowOptions } from './following.js';
import { Position } from './position.js';
import type { SseFrame } from './sse-decoder.js';

/** An event as it came, with the stream that it is of. */
export interface RawEventOfMany extends RawEvent {
  readonly stream: string;
}

/** An event with the stream that it is of; its `id` is a cursor of that stream. */
export interface EventOfMany<T> extends StreamEvent<T> {
  readonly stream: string;
}

export interface SubscribeManyOptions<T> extends FollowOptions {
  /**
   * Where to begin: `cursor` of a subscription to the same streams in the same order; or a word, `earliest` or `latest`,
   * for all of them; or of each stream a cursor of its own or a word, `latest` where there is none.
   */
  readonly cursor?: string | Readonly<Record<string, string>> | undefined;
  /** What becomes of an event's data; the text as it is when absent. */
  readonly decode: (event: RawEventOfMany) => T;
  /**
   * Told of each stream that cannot go on where it was. It then goes on from its newest event, and so do the others from
   * where they are. Without it the iteration ends with the error; what this throws ends it too.
   */
  readonly onUnavailable?: ((stream: string, error: ResumeUnavailableError) => void) | undefined;
  /** Told of each stream that was closed and handed over whole. The others go on. */
  readonly onClosed?: ((stream: string) => void) | undefined;
}

/** What the data of a frame says. */
interface Told {
  readonly stream: string;
  readonly id: string;
  readonly type: string;
  readonly data: string;
  readonly encoding?: 'base64';
}

export class MultiSubscription<T> extends Following<EventOfMany<T>> {
  readonly #connection: Connection;
  readonly #options: SubscribeManyOptions<T>;
  readonly #positions: ReadonlyMap<string, Position>;
  readonly #closed = new Set<string>();
  /** Of all streams together; only the server reads what is in it. */
  #cursor: string | null = null;

  constructor(connection: Connection, names: readonly string[], options: SubscribeManyOptions<T>) {
    super(options);
    const { cursor, types } = options;
    this.#connection = connection;
    this.#options = options;
    const isFiltered = types !== undefined;
    const own = typeof cursor === 'object' ? cursor : {};
    this.#positions = new Map(names.map((name) => [name, positionAt(own[name], isFiltered)]));
    if (typeof cursor === 'string' && !isWord(cursor)) this.#cursor = cursor;
  }

  /** What to begin with next time, for the same streams in the same order; null before there is a position. */
  get cursor(): string | null {
    return this.#cursor;
  }

  /** Where it is in one of the streams, as far as an event has told; a cursor of that stream. */
  cursorOf(stream: string): string | null {
    return this.#positions.get(stream)?.cursor ?? null;
  }

  protected ask(signal: AbortSignal): Promise<Response> {
    const { types, cursor = 'latest', onUnavailable } = this.#options;
    // Throws for what is no name: the server could not tell it from a parameter.
    for (const name of this.#positions.keys()) streamPath(name);
    const names = [...this.#positions.keys()];
    const own = typeof cursor === 'string' ? [cursor] : names.map((name) => cursor[name] ?? 'latest');
    return this.#connection.request('/v1/streams', {
      query: {
        stream: names,
        cursor: this.#cursor === null ? own : undefined,
        types: types?.join(','),
        on_unavailable: onUnavailable === undefined ? undefined : 'event',
      },
      headers: {
        Accept: 'text/event-stream',
        ...(this.#cursor === null ? {} : { 'Last-Event-ID': this.#cursor }),
      },
      signal,
    });
  }

  protected accept({ id, type, data }: SseFrame): Accepted<EventOfMany<T>> {
    if (data === null) {
      this.#cursor = id ?? this.#cursor;
      return null;
    }
    const told = JSON.parse(data) as Told;
    const position = this.#positions.get(told.stream);
    if (position === undefined) return this.violated(`an event of "${told.stream}"`, this.#cursor);
    if (type === 'stream_closed' && id === null) return this.#ended(told.stream, position, JSON.parse(data));
    if (type === 'stream_deleted' && id === null) throw new StreamDeletedError(position.cursor, told.stream);
    if (id === null) return this.violated(null, this.#cursor);
    if (type === 'resume_unavailable') {
      this.#unavailable(told.stream, position, JSON.parse(data));
      this.#cursor = id;
      return null;
    }
    if (!position.moveToEvent(told.id))
      return this.violated(`${told.id} of "${told.stream}"`, position.cursor);
    const event = { stream: told.stream, id: told.id, type: told.type };
    const raw = told.encoding === 'base64' ? fromBase64(told.data) : told.data;
    const decoded = this.#options.decode({ ...event, data: raw });
    this.#cursor = id;
    return { event: { ...event, data: decoded } };
  }

  #ended(stream: string, position: Position, { cursor }: { cursor: unknown }): Accepted<EventOfMany<T>> {
    if (!position.isEnd(cursor)) return this.violated(`the end of "${stream}" at ${cursor}`, position.cursor);
    const isNews = !this.#closed.has(stream);
    this.#closed.add(stream);
    if (isNews) this.#options.onClosed?.(stream);
    return this.#closed.size === this.#positions.size ? 'closed' : null;
  }

  #unavailable(stream: string, position: Position, problem: Readonly<Record<string, unknown>>): void {
    const error = new ResumeUnavailableError(problem, 200);
    const { onUnavailable } = this.#options;
    if (onUnavailable === undefined) throw error;
    onUnavailable(stream, error);
    if (error.epoch !== null && error.head !== null) position.reset(formatCursor(error.epoch, error.head));
  }
}

function isWord(cursor: string | undefined): boolean {
  return cursor === undefined || cursor === 'earliest' || cursor === 'latest';
}

function positionAt(cursor: string | undefined, isFiltered: boolean): Position {
  return new Position(cursor === undefined || isWord(cursor) ? null : cursor, { isFiltered });
}
