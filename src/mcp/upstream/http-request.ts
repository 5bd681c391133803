/**
 * HTTP to a server behind the front: requests over connections that are used again, and their answers read in a bounded
 * way.
 */

import type { SseDecoder, SseFrame } from '../../client/sse-decoder.js';
import { HttpConnection } from './http-connection.js';
import type { HttpResponse } from './http-response.js';
import { UpstreamError } from './upstream.js';

/** Connections kept for later. */
const IDLE_CONNECTIONS_MAX = 64;
/** What a header may have in it: anything else would end it, or the head. */
const NAME = /^[!#$%&'*+.^_`|~0-9A-Za-z-]+$/;
const VALUE = /^[\t\x20-\x7e\x80-\xff]*$/;

/** Something that can be given up. */
export interface UnderWay {
  destroy(): void;
}

/** Connections to one server. */
export class HttpTarget {
  readonly url: URL;
  readonly #silenceMs: number;
  /** What each request begins with, after its method. */
  readonly #place: string;
  /** The one that was used last is used next. */
  readonly #idle: HttpConnection[] = [];
  /** Bounded by the calls. */
  readonly #connections = new Set<HttpConnection>();

  /** @param silenceMs how long nothing may come before a request is given up. */
  constructor(url: URL, silenceMs: number) {
    this.url = url;
    this.#silenceMs = silenceMs;
    this.#place = `${url.pathname}${url.search} HTTP/1.1\r\nHost: ${url.host}\r\nConnection: keep-alive\r\n`;
  }

  /** @param underWay holds the request until it is over. @throws {UpstreamError} `unreachable` or `silent` */
  async request(
    method: 'POST' | 'GET' | 'DELETE',
    headers: Readonly<Record<string, string>>,
    body: Uint8Array | null,
    underWay?: Set<UnderWay>,
  ): Promise<HttpResponse> {
    const head = `${method} ${this.#place}${this.#credentials(headers)}${headerLines(headers)}`;
    const length = body === null ? '' : `Content-Length: ${body.length}\r\n`;
    const connection = this.#idle.pop() ?? this.#connect();
    underWay?.add(connection);
    return connection.send(`${head}${length}\r\n`, body, () => underWay?.delete(connection));
  }

  close(): void {
    for (const connection of this.#connections) connection.destroy();
  }

  #connect(): HttpConnection {
    const connection = new HttpConnection({
      url: this.url,
      silenceMs: this.#silenceMs,
      idle: (connection) => {
        if (this.#idle.length >= IDLE_CONNECTIONS_MAX) connection.destroy();
        else this.#idle.push(connection);
      },
      closed: (connection) => {
        this.#connections.delete(connection);
        const at = this.#idle.indexOf(connection);
        if (at >= 0) this.#idle.splice(at, 1);
      },
    });
    this.#connections.add(connection);
    return connection;
  }

  /** Those of the URL, where the client shows none. */
  #credentials(headers: Readonly<Record<string, string>>): string {
    const { username, password } = this.url;
    if (username === '' || headers.authorization !== undefined) return '';
    const pair = `${decodeURIComponent(username)}:${decodeURIComponent(password)}`;
    return `Authorization: Basic ${Buffer.from(pair).toString('base64')}\r\n`;
  }
}

/** @throws {UpstreamError} headers of clients are passed on, and may be such as nobody can send. */
function headerLines(headers: Readonly<Record<string, string>>): string {
  let lines = '';
  for (const name in headers) {
    const value = headers[name] as string;
    if (!NAME.test(name) || !VALUE.test(value)) throw new UpstreamError('unreachable');
    lines += `${name}: ${value}\r\n`;
  }
  return lines;
}

/** @throws {UpstreamError} `broken`, `silent` or `message_too_large` */
export async function readText(response: HttpResponse, bytesMax: number): Promise<string> {
  const chunks: Buffer[] = [];
  let length = 0;
  await response.read((chunk) => {
    length += chunk.length;
    if (length > bytesMax) throw new UpstreamError('message_too_large');
    chunks.push(chunk);
  });
  return Buffer.concat(chunks).toString();
}

/**
 * Gives the blocks of an event stream to `take`, in their order; where it returns a promise, the next when that resolves.
 * Resolves at the end. @throws {UpstreamError} as `readText`, and what `take` throws
 */
export function readEvents(
  response: HttpResponse,
  bytesMax: number,
  { decoder, take }: { decoder: SseDecoder; take: (frame: SseFrame) => Promise<void> | void },
): Promise<void> {
  let length = 0;
  const giveAll = (frames: Iterator<SseFrame>): Promise<void> | void => {
    for (let { value, done } = frames.next(); done !== true; { value, done } = frames.next()) {
      if (value.data !== null && value.data.length > bytesMax) throw new UpstreamError('message_too_large');
      length = 0;
      const room = take(value);
      if (room !== undefined) return room.then(() => giveAll(frames));
    }
    if (length > bytesMax) throw new UpstreamError('message_too_large');
  };
  return response.read((chunk) => {
    length += chunk.length;
    return giveAll(decoder.push(chunk));
  });
}
