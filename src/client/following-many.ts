/**
 * What subscriptions over several streams do alike (contract 4.10, 4.11): each stream's events once, in order and without a
 * gap. Between streams there is no order.
 */

import { formatCursor } from '../core/cursor.js';
import { ResumeUnavailableError, StreamDeletedError } from './client-error.js';
import { fromBase64, type RawEvent, type StreamEvent } from './event-data.js';
import { type Accepted, Following, type FollowOptions } from './following.js';
import type { Position } from './position.js';
import type { SseFrame } from './sse-decoder.js';

/** An event as it came, with the stream that it is of. */
export interface RawEventOfMany extends RawEvent {
  readonly stream: string;
}

/** An event with the stream that it is of; its `id` is a cursor of that stream. */
export interface EventOfMany<T> extends StreamEvent<T> {
  readonly stream: string;
}

export interface FollowManyOptions<T> extends FollowOptions {
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

export abstract class FollowingMany<T> extends Following<EventOfMany<T>> {
  readonly #options: FollowManyOptions<T>;
  /** Of all streams together; only the server reads what is in it. */
  #cursor: string | null = null;

  constructor(options: FollowManyOptions<T>, cursor: string | null) {
    super(options);
    this.#options = options;
    this.#cursor = cursor;
  }

  /** What to begin with next time; null before there is a position. */
  get cursor(): string | null {
    return this.#cursor;
  }

  /** Where it is in one of the streams, as far as an event has told; a cursor of that stream. */
  abstract cursorOf(stream: string): string | null;

  /** The position in a stream that the server tells of; null where it is none of these. */
  protected abstract positionOf(stream: string): Position | null;

  /** A stream was closed and handed over whole. @returns what that means for the iteration */
  protected abstract streamClosed(stream: string): Accepted<EventOfMany<T>>;

  /** A stream was deleted. @throws where that ends the iteration */
  protected streamDeleted(stream: string): void {
    throw new StreamDeletedError(this.cursorOf(stream), stream);
  }

  /** A stream cannot go on where it was, and is told to go on from here; null: it is not there any more. */
  protected streamMoved(stream: string, cursor: string | null): void {
    if (cursor !== null) this.positionOf(stream)?.reset(cursor);
  }

  protected accept({ id, type, data }: SseFrame): Accepted<EventOfMany<T>> {
    if (data === null) {
      this.#cursor = id ?? this.#cursor;
      return null;
    }
    const told = JSON.parse(data) as Told;
    const position = this.positionOf(told.stream);
    if (position === null) return this.violated(`an event of "${told.stream}"`, this.#cursor);
    switch (type) {
      case 'stream_closed': {
        const { cursor } = JSON.parse(data) as { cursor: unknown };
        if (!position.isEnd(cursor))
          return this.violated(`the end of "${told.stream}" at ${cursor}`, position.cursor);
        this.#cursor = id ?? this.#cursor;
        return this.streamClosed(told.stream);
      }
      case 'stream_deleted':
        this.#cursor = id ?? this.#cursor;
        this.streamDeleted(told.stream);
        return null;
      case 'resume_unavailable':
        if (id === null) return this.violated(null, this.#cursor);
        this.#unavailable(told.stream, JSON.parse(data));
        this.#cursor = id;
        return null;
    }
    return this.#event(told, id, position);
  }

  #event(told: Told, id: string | null, position: Position): Accepted<EventOfMany<T>> {
    if (id === null) return this.violated(null, this.#cursor);
    if (!position.moveToEvent(told.id))
      return this.violated(`${told.id} of "${told.stream}"`, position.cursor);
    const event = { stream: told.stream, id: told.id, type: told.type };
    const raw = told.encoding === 'base64' ? fromBase64(told.data) : told.data;
    const decoded = this.#options.decode({ ...event, data: raw });
    this.#cursor = id;
    return { event: { ...event, data: decoded } };
  }

  #unavailable(stream: string, problem: Readonly<Record<string, unknown>>): void {
    const error = new ResumeUnavailableError(problem, 200);
    const { onUnavailable } = this.#options;
    if (onUnavailable === undefined) throw error;
    onUnavailable(stream, error);
    const { epoch, head } = error;
    this.streamMoved(stream, epoch === null || head === null ? null : formatCursor(epoch, head));
  }
}
