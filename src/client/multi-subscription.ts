/**
 * Follows several streams over one connection at a time (contract 4.10).
 */

import { refuseUnsendable } from './client-error.js';
import { type Connection, streamPath } from './connection.js';
import type { Accepted } from './following.js';
import { type EventOfMany, FollowingMany, type FollowManyOptions } from './following-many.js';
import { Position } from './position.js';

export interface SubscribeManyOptions<T> extends FollowManyOptions<T> {
  /**
   * Where to begin: `cursor` of a subscription to the same streams in the same order; or a word, `earliest` or `latest`,
   * for all of them; or of each stream a cursor of its own or a word, `latest` where there is none.
   */
  readonly cursor?: string | Readonly<Record<string, string>> | undefined;
}

/** {@link cursor} is for the same streams in the same order. */
export class MultiSubscription<T> extends FollowingMany<T> {
  readonly #connection: Connection;
  readonly #options: SubscribeManyOptions<T>;
  readonly #positions: ReadonlyMap<string, Position>;
  readonly #closed = new Set<string>();

  constructor(connection: Connection, names: readonly string[], options: SubscribeManyOptions<T>) {
    const { cursor, types } = options;
    super(options, typeof cursor === 'string' && !isWord(cursor) ? cursor : null);
    this.#connection = connection;
    this.#options = options;
    const isFiltered = types !== undefined;
    this.#positions = new Map(names.map((name) => [name, positionAt(startOf(cursor, name), isFiltered)]));
  }

  override cursorOf(stream: string): string | null {
    return this.#positions.get(stream)?.cursor ?? null;
  }

  protected ask(signal: AbortSignal): Promise<Response> {
    const { cursor = 'latest', onUnavailable } = this.#options;
    if (typeof cursor === 'string') refuseUnsendable(cursor);
    // Throws for what is no name: the server could not tell it from a parameter.
    for (const name of this.#positions.keys()) streamPath(name);
    const names = [...this.#positions.keys()];
    const own =
      typeof cursor === 'string' ? [cursor] : names.map((name) => startOf(cursor, name) ?? 'latest');
    return this.#connection.request('/v1/streams', {
      query: {
        stream: names,
        cursor: this.cursor === null ? own : undefined,
        types: this.types,
        on_unavailable: onUnavailable === undefined ? undefined : 'event',
      },
      headers: {
        Accept: 'text/event-stream',
        ...(this.cursor === null ? {} : { 'Last-Event-ID': this.cursor }),
      },
      signal,
    });
  }

  protected override positionOf(stream: string): Position | null {
    return this.#positions.get(stream) ?? null;
  }

  protected override streamClosed(stream: string): Accepted<EventOfMany<T>> {
    const isNews = !this.#closed.has(stream);
    this.#closed.add(stream);
    if (isNews) this.#options.onClosed?.(stream);
    return this.#closed.size === this.#positions.size ? 'closed' : null;
  }
}

/** Where one of the streams is to begin, if that is said for each. Its name may be one that every object has. */
function startOf(cursor: SubscribeManyOptions<unknown>['cursor'], name: string): string | undefined {
  return typeof cursor === 'object' && Object.hasOwn(cursor, name) ? cursor[name] : undefined;
}

function isWord(cursor: string | undefined): boolean {
  return cursor === undefined || cursor === 'earliest' || cursor === 'latest';
}

function positionAt(cursor: string | undefined, isFiltered: boolean): Position {
  return new Position(cursor === undefined || isWord(cursor) ? null : cursor, { isFiltered });
}
