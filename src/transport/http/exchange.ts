/**
 * One request and its answer. The library's request object lives only while its handler runs, so what is
 * needed later is read at once; its response object may not be touched after the peer is gone.
 */

import type { HttpRequest, HttpResponse } from 'uWebSockets.js';
import { ANYBODY, type Principal } from '../../auth/principal.js';
import { RequestError } from '../../errors.js';
import { Counter } from '../../ring/counters.js';
import type { TallyKey } from '../../ring/tally.js';
import type { EdgeServices } from '../edge-services.js';
import { HeldBody, readBody } from './request-body.js';

const STATUS_TEXT: Readonly<Record<number, string>> = {
  200: '200 OK',
  201: '201 Created',
  202: '202 Accepted',
  204: '204 No Content',
  304: '304 Not Modified',
  308: '308 Permanent Redirect',
  400: '400 Bad Request',
  401: '401 Unauthorized',
  403: '403 Forbidden',
  404: '404 Not Found',
  405: '405 Method Not Allowed',
  406: '406 Not Acceptable',
  409: '409 Conflict',
  410: '410 Gone',
  412: '412 Precondition Failed',
  413: '413 Content Too Large',
  415: '415 Unsupported Media Type',
  429: '429 Too Many Requests',
  500: '500 Internal Server Error',
  501: '501 Not Implemented',
  502: '502 Bad Gateway',
  503: '503 Service Unavailable',
  507: '507 Insufficient Storage',
};

export type Headers = Readonly<Record<string, string>>;

export class Exchange {
  readonly res: HttpResponse;
  readonly edge: EdgeServices;
  /** Who sent the request; everybody, until a guard says who. */
  principal: Principal = ANYBODY;
  /** The stream that it is about; empty where there is none, or a guard has not said. */
  stream = '';
  /** Where from; null where no limit is by address. */
  readonly address: TallyKey | null;
  readonly #origin: string;
  /** The peer is gone, or was answered. */
  #done = false;
  #watching = false;
  /** HEAD: the answer has the headers of a body and none of it. */
  #headOnly = false;
  #gone: (() => void) | null = null;
  #heldBody: HeldBody | null = null;

  constructor(edge: EdgeServices, res: HttpResponse, req: HttpRequest) {
    this.edge = edge;
    this.res = res;
    this.#origin = edge.cors.enabled ? req.getHeader('origin') : '';
    this.address = edge.limits.needsAddress
      ? edge.limits.key(edge.clientAddress.of(res.getRemoteAddress(), req.getHeader('x-forwarded-for')))
      : null;
    edge.counters.add(Counter.requests, 1);
  }

  /** For routes that may be asked by HEAD. */
  noteMethod(req: HttpRequest): void {
    this.#headOnly = req.getMethod() === 'head';
  }

  get done(): boolean {
    return this.#done;
  }

  /** Must be called by a handler that returns before it has answered; after that the response is not to be touched. */
  watch(): void {
    if (this.#watching || this.#done) return;
    this.#watching = true;
    this.edge.counters.add(Counter.connectionsInUse, 1);
    this.res.onAborted(() => {
      this.#leave();
      this.#gone?.();
    });
  }

  /** Has `gone` called when the peer goes away before it is answered. After `watch`. */
  onGone(gone: () => void): void {
    this.#gone = gone;
  }

  /** Has the body kept that comes before a handler can read it; the library would drop it. */
  holdBody(): void {
    this.#heldBody = new HeldBody(this.res, this.edge.config.bodyBytesMax);
  }

  /** Reads the body, bounded; see request-body.ts. Not called when the peer is gone before. */
  readBody(bytesMax: number, done: (body: Uint8Array | null) => void): void {
    if (this.#heldBody === null) readBody(this.res, bytesMax, done);
    else this.#heldBody.read(bytesMax, done);
  }

  /** Answers with a whole body. Does nothing when the peer is gone. */
  send(status: number, headers: Headers, body: string | Uint8Array, options?: { close: boolean }): void {
    const close = options?.close ?? false;
    this.answer(status, headers, (res) => {
      if (!this.#headOnly) return res.end(body, close);
      // Told a length, the library would leave the response unfinished.
      res.writeHeader('Content-Length', String(Buffer.byteLength(body)));
      return res.endWithoutBody();
    });
  }

  sendJson(status: number, value: unknown, headers: Headers = {}): void {
    this.send(status, { 'Content-Type': 'application/json', ...headers }, JSON.stringify(value));
  }

  /** Writes the head of an answer and leaves the rest to `finish`. */
  answer(status: number, headers: Headers, finish: (res: HttpResponse) => unknown): void {
    if (this.#done) return;
    this.#leave();
    this.res.cork(() => {
      // Of a server behind this one it may be any.
      this.res.writeStatus(STATUS_TEXT[status] ?? `${status} Other`);
      for (const name in headers) this.res.writeHeader(name, headers[name] as string);
      this.edge.cors.writeHeaders(this.res, this.#origin);
      finish(this.res);
    });
  }

  /** Answers with a problem (contract 8). What is no RequestError is a fault of ours and goes on as one. */
  fail(error: unknown, options?: { close: boolean }): void {
    if (!(error instanceof RequestError)) throw error;
    this.edge.counters.add(Counter.requestErrors, 1);
    const headers = {
      'Gapless-Request': this.edge.refusals.note(this, error),
      'Content-Type': 'application/problem+json',
      'Cache-Control': 'no-store',
      ...error.headers,
    };
    // Where there are too many connections, this one is not kept for the next request.
    const close = options?.close === true || error.code === 'too_many_connections';
    this.send(error.status, headers, JSON.stringify(error.problem()), { close });
  }

  /** Runs a handler to its end, whether it answers at once or later. */
  async run(handler: () => Promise<void> | void): Promise<void> {
    try {
      const later = handler();
      if (later === undefined) return;
      this.watch();
      await later;
    } catch (error) {
      this.fail(error);
    }
  }

  #leave(): void {
    if (this.#done) return;
    this.#done = true;
    if (this.#watching) this.edge.counters.add(Counter.connectionsInUse, -1);
  }
}
