/**
 * Follows all streams whose names begin alike over one connection at a time, also those that are made later
 * (contract 4.11).
 */

import { refuseUnsendable } from './client-error.js';
import type { Connection } from './connection.js';
import type { Accepted } from './following.js';
import { type EventOfMany, FollowingMany, type FollowManyOptions } from './following-many.js';
import { Position } from './position.js';

export interface SubscribePrefixOptions<T> extends FollowManyOptions<T> {
  /** Where to begin: `cursor` of a subscription to the same prefix; or `earliest`, or `latest`, for all streams. */
  readonly cursor?: string | undefined;
  /** Told of each stream that was deleted; what had not been handed over is gone. Without it the iteration ends. */
  readonly onDeleted?: ((stream: string) => void) | undefined;
}

/** {@link cursor} is kept by the server, for some minutes after the connection has ended. Never ends by itself. */
export class PrefixSubscription<T> extends FollowingMany<T> {
  readonly #connection: Connection;
  readonly #prefix: string;
  readonly #options: SubscribePrefixOptions<T>;
  /** Of streams that have not ended. */
  readonly #positions = new Map<string, Position>();
  /** `earliest` or `latest`, while there is no position. */
  readonly #start: string;

  constructor(connection: Connection, prefix: string, options: SubscribePrefixOptions<T>) {
    const { cursor = 'latest' } = options;
    super(options, cursor === 'earliest' || cursor === 'latest' ? null : cursor);
    this.#connection = connection;
    this.#prefix = prefix;
    this.#options = options;
    this.#start = cursor;
  }

  override cursorOf(stream: string): string | null {
    return this.#positions.get(stream)?.cursor ?? null;
  }

  protected ask(signal: AbortSignal): Promise<Response> {
    refuseUnsendable(this.#options.cursor);
    const { onUnavailable } = this.#options;
    return this.#connection.request('/v1/streams', {
      query: {
        prefix: this.#prefix,
        types: this.types,
        on_unavailable: onUnavailable === undefined ? undefined : 'event',
      },
      headers: { Accept: 'text/event-stream', 'Last-Event-ID': this.cursor ?? this.#start },
      signal,
    });
  }

  protected override positionOf(stream: string): Position | null {
    if (!stream.startsWith(this.#prefix)) return null;
    let position = this.#positions.get(stream);
    if (position === undefined) {
      position = new Position(null, { isFiltered: this.#options.types !== undefined });
      this.#positions.set(stream, position);
    }
    return position;
  }

  protected override streamClosed(stream: string): Accepted<EventOfMany<T>> {
    this.#positions.delete(stream);
    this.#options.onClosed?.(stream);
    return null;
  }

  protected override streamDeleted(stream: string): void {
    const { onDeleted } = this.#options;
    if (onDeleted === undefined) super.streamDeleted(stream);
    this.#positions.delete(stream);
    onDeleted?.(stream);
  }

  protected override streamMoved(stream: string, cursor: string | null): void {
    if (cursor === null) this.#positions.delete(stream);
    else super.streamMoved(stream, cursor);
  }
}
