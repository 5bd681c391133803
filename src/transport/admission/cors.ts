/**
 * Which pages may use the API from a browser (contract 9.3): an allow-list of origins, empty by default.
 */

import type { HttpResponse } from 'uWebSockets.js';

const EXPOSED =
  'Gapless-Cursor, Gapless-Epoch, Gapless-Floor, Gapless-Head, Gapless-Closed, Gapless-Next, ' +
  'Gapless-Duplicate, Gapless-Up-To-Date, Gapless-Request, Retry-After, Mcp-Session-Id';
const METHODS = 'GET, HEAD, POST, PUT, DELETE';
const HEADERS =
  'Content-Type, Accept, Authorization, Last-Event-ID, Cache-Control, Gapless-Event, Gapless-If-Head, ' +
  'Producer-Id, Producer-Epoch, Producer-Seq, Idempotency-Key, Mcp-Session-Id, MCP-Protocol-Version';
const LOOPBACK_ORIGIN = /^https?:\/\/(?:localhost|127\.0\.0\.1|\[::1\])(?::\d{1,5})?$/;
const PREFLIGHT_SECONDS = '600';

export class Cors {
  /** False: nobody is allowed, and no request needs to be asked for its origin. */
  readonly enabled: boolean;
  readonly #origins: ReadonlySet<string>;

  constructor(origins: readonly string[]) {
    this.#origins = new Set(origins);
    this.enabled = origins.length > 0;
  }

  /** Adds what lets the page at `origin` read the answer. */
  writeHeaders(res: HttpResponse, origin: string): void {
    if (!this.enabled) return;
    res.writeHeader('Vary', 'Origin');
    if (!this.#allows(origin)) return;
    res.writeHeader('Access-Control-Allow-Origin', origin);
    res.writeHeader('Access-Control-Expose-Headers', EXPOSED);
  }

  /**
   * Whether a page may open a WebSocket, for which browsers ask nobody beforehand: from an origin on the list, or from
   * this server itself. Without an origin it is not a page.
   */
  mayConnect(origin: string, host: string): boolean {
    return origin === '' || this.#allows(origin) || origin.replace(/^https?:\/\//, '') === host;
  }

  /**
   * Whether a page may call an MCP server: from an origin on the list, or from this machine. Not from the name that it
   * has called this server by: a name that somebody else holds may have been made to point here.
   */
  mayCall(origin: string): boolean {
    return origin === '' || this.#allows(origin) || LOOPBACK_ORIGIN.test(origin);
  }

  /** Answers a preflight. */
  answerPreflight(res: HttpResponse, origin: string): void {
    res.writeStatus('204 No Content');
    this.writeHeaders(res, origin);
    if (this.#allows(origin)) {
      res.writeHeader('Access-Control-Allow-Methods', METHODS);
      res.writeHeader('Access-Control-Allow-Headers', HEADERS);
      res.writeHeader('Access-Control-Max-Age', PREFLIGHT_SECONDS);
    }
    res.endWithoutBody();
  }

  #allows(origin: string): boolean {
    return origin !== '' && (this.#origins.has('*') || this.#origins.has(origin));
  }
}
