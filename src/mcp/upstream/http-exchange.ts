/** One request to a server behind the front and the answer to it, as the HTTP client (`undici`) tells of them. */

import { type Dispatcher, errors, util } from 'undici';
import { HttpResponse } from './http-response.js';
import { UpstreamError } from './upstream.js';

/** The client gave it up, because nothing came. */
const SILENCES = [errors.ConnectTimeoutError, errors.HeadersTimeoutError, errors.BodyTimeoutError];

export class HttpExchange implements Dispatcher.DispatchHandlers {
  /** Resolves with the head of the answer. @throws {UpstreamError} `unreachable` or `silent` */
  readonly answer: Promise<HttpResponse>;
  readonly #over: (isWhole: boolean) => void;
  #answered!: (response: HttpResponse) => void;
  #failed!: (error: UpstreamError) => void;
  #response: HttpResponse | null = null;
  #isOver = false;

  /** @param over called once, when nothing more comes of it; where it did not go well, it hangs up. */
  constructor(over: (isWhole: boolean) => void) {
    this.#over = over;
    this.answer = new Promise((answered, failed) => {
      this.#answered = answered;
      this.#failed = failed;
    });
  }

  /** Nobody wants it any more. */
  destroy(): void {
    this.#fail('broken');
  }

  /** The client takes no handler without it. */
  onConnect(): void {}

  onHeaders(status: number, headers: Buffer[], resume: () => void): boolean {
    // What comes before the answer, such as 103.
    if (status < 200) return true;
    // Names are the server's: they must not meet those of a prototype.
    const head = { status, headers: util.parseHeaders(headers, Object.create(null)) };
    this.#response = new HttpResponse(head, { resume, abandon: () => this.destroy() });
    this.#answered(this.#response);
    return true;
  }

  onData(bytes: Buffer): boolean {
    return (this.#response as HttpResponse).push(bytes);
  }

  onComplete(): void {
    // A body without a length ends with its connection, also where it was this side that hung up.
    if (this.#isOver) return;
    this.#isOver = true;
    this.#response?.end('end');
    this.#over(true);
  }

  onError(error: Error): void {
    this.#fail(SILENCES.some((silence) => error instanceof silence) ? 'silent' : 'broken');
  }

  #fail(reason: 'silent' | 'broken'): void {
    if (this.#isOver) return;
    this.#isOver = true;
    this.#response?.end(new UpstreamError(reason));
    this.#failed(new UpstreamError(reason === 'silent' ? 'silent' : 'unreachable'));
    this.#over(false);
  }
}
