/**
 * Streams made before they are needed: a call then does not wait for the coordinator, nor, with a durable log, for the
 * commit of a creation.
 */

import type { StreamRef } from '../../broker/edge-stream.js';

/** Enough for calls that come together; each costs a slot and nothing else. */
const SPARES = 32;

export interface SpareStreamsOptions {
  /** @throws {RequestError} when there is no room */
  readonly make: (count: number) => Promise<readonly StreamRef[]>;
  /** Whether a stream is still there; its time to live begins anew. */
  readonly touch: (stream: StreamRef) => boolean;
}

export class SpareStreams {
  readonly #options: SpareStreamsOptions;
  #spares: StreamRef[] = [];
  #making: Promise<void> | null = null;

  constructor(options: SpareStreamsOptions) {
    this.#options = options;
  }

  /** @throws {RequestError} when there is no room for another stream */
  async take(): Promise<StreamRef> {
    for (;;) {
      const stream = this.#spares.pop();
      if (this.#spares.length < SPARES / 2) this.#making ??= this.#make();
      if (stream !== undefined && this.#options.touch(stream)) {
        // Who finds none hears of a failure; who was given one does not care.
        this.#making?.catch(() => undefined);
        return stream;
      }
      if (this.#spares.length === 0) await this.#making;
    }
  }

  /** Keeps the spares from their time to live. */
  keep(): void {
    this.#spares = this.#spares.filter((stream) => this.#options.touch(stream));
  }

  async #make(): Promise<void> {
    try {
      this.#spares.push(...(await this.#options.make(SPARES - this.#spares.length)));
    } finally {
      this.#making = null;
    }
  }
}
