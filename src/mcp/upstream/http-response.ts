/**
 * The answer of a server, from its head on. Its body waits until it is read, and is read no faster than it is taken: what
 * is too much meanwhile stays with the server.
 */

import type { ResponseHead } from './http-response-parser.js';
import type { UpstreamError } from './upstream.js';

/** Bytes that may wait here. One read of a socket may bring somewhat more. */
const WAITING_BYTES_MAX = 64 * 1024;

/** The connection that it comes over. */
export interface ResponseSource {
  pause(): void;
  resume(): void;
  /** Hangs up, unless the response is over. */
  abandon(): void;
}

export class HttpResponse {
  readonly status: number;
  readonly #headers: ReadonlyMap<string, string>;
  readonly #source: ResponseSource;
  #waiting: Buffer[] = [];
  #waitingBytes = 0;
  #isPaused = false;
  #ending: 'end' | UpstreamError | null = null;
  #news: () => void = () => undefined;

  constructor({ status, headers }: ResponseHead, source: ResponseSource) {
    this.status = status;
    this.#headers = headers;
    this.#source = source;
  }

  /** @param name in lower case. @returns null where there is none, or an empty one. */
  header(name: string): string | null {
    return this.#headers.get(name) || null;
  }

  /**
   * Gives the body to `take` as it comes; where that returns a promise, the rest when it resolves. Once. Resolves at the
   * end. @throws {UpstreamError} `broken` or `silent`, and what `take` throws
   */
  async read(take: (bytes: Buffer) => Promise<void> | void): Promise<void> {
    try {
      for (;;) {
        for (const bytes of this.#takeWaiting()) {
          const room = take(bytes);
          if (room !== undefined) await room;
        }
        if (this.#waiting.length > 0) continue;
        if (this.#ending === 'end') return;
        if (this.#ending !== null) throw this.#ending;
        await this.#untilNews();
      }
    } catch (error) {
      this.destroy();
      throw error;
    }
  }

  /** Nobody wants the rest. */
  destroy(): void {
    this.#source.abandon();
  }

  /** Told by the connection. */
  push(bytes: Buffer): void {
    this.#waiting.push(bytes);
    this.#waitingBytes += bytes.length;
    if (this.#waitingBytes > WAITING_BYTES_MAX && !this.#isPaused) {
      this.#isPaused = true;
      this.#source.pause();
    }
    this.#news();
  }

  /** Told by the connection, once: the body is whole, or nothing more of it comes. */
  end(ending: 'end' | UpstreamError): void {
    this.#ending = ending;
    this.#news();
  }

  #takeWaiting(): Buffer[] {
    const waiting = this.#waiting;
    this.#waiting = [];
    this.#waitingBytes = 0;
    return waiting;
  }

  #untilNews(): Promise<void> {
    if (this.#isPaused) {
      this.#isPaused = false;
      this.#source.resume();
    }
    return new Promise((resolve) => {
      this.#news = resolve;
    });
  }
}
