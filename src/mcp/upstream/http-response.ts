/**
 * The answer of a server, from its head on. Its body waits until it is read, and is read no faster than it is taken: what
 * is too much meanwhile stays with the server.
 */

import type { UpstreamError } from './upstream.js';

/** Bytes that may wait here. One read of a socket may bring somewhat more. */
const WAITING_BYTES_MAX = 64 * 1024;

export interface ResponseHead {
  readonly status: number;
  /** Names in lower case; one that came more than once has a list. */
  readonly headers: Readonly<Record<string, string | string[]>>;
}

/** The connection that it comes over. */
export interface ResponseSource {
  /** Goes on after `push` has said that there is no room. */
  resume(): void;
  /** Hangs up, unless the response is over. */
  abandon(): void;
}

export class HttpResponse {
  readonly status: number;
  readonly #headers: ResponseHead['headers'];
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

  /**
   * @param name in lower case. @returns the values of all of that name with commas between them; null where there is none,
   * or an empty one.
   */
  header(name: string): string | null {
    const value = this.#headers[name];
    return (Array.isArray(value) ? value.join(', ') : value) || null;
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

  /** Told by the connection. @returns false: no room for more until `resume`. */
  push(bytes: Buffer): boolean {
    this.#waiting.push(bytes);
    this.#waitingBytes += bytes.length;
    this.#isPaused = this.#waitingBytes > WAITING_BYTES_MAX;
    this.#news();
    return !this.#isPaused;
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
    const news = new Promise<void>((resolve) => {
      this.#news = resolve;
    });
    // The connection may have the next bytes, and push them at once.
    if (this.#isPaused) this.#source.resume();
    return news;
  }
}
