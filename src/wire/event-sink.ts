import type { FrameBatch } from '../core/sse-frame.js';
import { RequestError } from '../errors.js';

/** Bounds of one publish (contract 3.6). */
export interface PublishLimits {
  /** Most bytes of one event's data, before it is framed. */
  readonly eventBytesMax: number;
  /** Most events of one batch. */
  readonly batchEventsMax: number;
}

/**
 * Where the decoders of publish bodies put their events: holds each against the limits before it is framed.
 *
 * Every method throws {@link RequestError} `event_too_large` or `batch_too_large`.
 */
export class EventSink {
  /** The type of events that do not name their own: the `Gapless-Event` header (contract 3.2). */
  readonly defaultType: string | null;
  readonly #limits: PublishLimits;
  readonly #out: FrameBatch;

  constructor(out: FrameBatch, defaultType: string | null, limits: PublishLimits) {
    this.#out = out;
    this.#limits = limits;
    this.defaultType = defaultType;
  }

  /** Takes data[start, end), which is UTF-8, as a text event. */
  text(data: Uint8Array, start: number, end: number, type: string | null): void {
    this.checkCount(this.#out.count + 1);
    this.checkSize(end - start);
    this.#out.pushText(data, start, end, type);
  }

  /** Takes data[start, end) as a binary event. */
  binary(data: Uint8Array, start: number, end: number, type: string | null): void {
    this.checkCount(this.#out.count + 1);
    this.checkSize(end - start);
    this.#out.pushBinary(data, start, end, type);
  }

  /** For a batch that says beforehand how many events it has. */
  checkCount(events: number): void {
    const { batchEventsMax } = this.#limits;
    if (events <= batchEventsMax) return;
    throw new RequestError('batch_too_large', `a batch has at most ${batchEventsMax} events`, {
      limit: batchEventsMax,
    });
  }

  /** For data that has to be made first: throws as soon as it has become too large. */
  checkSize(bytes: number): void {
    const { eventBytesMax } = this.#limits;
    if (bytes <= eventBytesMax) return;
    throw new RequestError('event_too_large', `the data of an event has at most ${eventBytesMax} bytes`, {
      limit: eventBytesMax,
    });
  }
}
