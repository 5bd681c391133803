/**
 * HTTP to a server behind the front: requests over connections that are used again, and their answers read in a bounded
 * way.
 */

import { buildConnector, Client } from 'undici';
import type { SseDecoder, SseFrame } from '../../client/sse-decoder.js';
import { HttpExchange } from './http-exchange.js';
import type { HttpResponse } from './http-response.js';
import { UpstreamError } from './upstream.js';

/**
 * How long a connection is kept that nobody uses. Less than the five seconds after which common servers hang up, for a
 * request that meets that hang-up is lost and may not be sent again.
 */
const IDLE_MS = 3000;
/** How much earlier than it says a server may hang up that names its keep-alive time. */
const HINT_MARGIN_MS = 1000;
/** Connections kept for later. */
const IDLE_CONNECTIONS_MAX = 64;
const HEAD_BYTES_MAX = 64 * 1024;

/** Something that can be given up. */
export interface UnderWay {
  destroy(): void;
}

/** Connections to one server, with one request at a time on each. */
export class HttpTarget {
  readonly url: URL;
  readonly #path: string;
  /** Of the URL; they are for requests whose client shows none. */
  readonly #credentials: Readonly<Record<string, string>>;
  readonly #options: Client.Options;
  /** The one that was used last is used next. */
  readonly #idle: Client[] = [];
  /** Bounded by the calls. */
  readonly #clients = new Set<Client>();

  /** @param silenceMs how long nothing may come before a request is given up; to within a second. */
  constructor(url: URL, silenceMs: number) {
    this.url = url;
    this.#path = `${url.pathname}${url.search}`;
    this.#credentials = credentialsOf(url);
    this.#options = {
      pipelining: 1,
      keepAliveTimeout: IDLE_MS,
      keepAliveMaxTimeout: IDLE_MS,
      keepAliveTimeoutThreshold: HINT_MARGIN_MS,
      // One for all, so that sessions of TLS are taken up again.
      connect: buildConnector({ timeout: silenceMs, allowH2: false }),
      headersTimeout: silenceMs,
      bodyTimeout: silenceMs,
      maxHeaderSize: HEAD_BYTES_MAX,
    };
  }

  /** @param underWay holds the request until it is over. @throws {UpstreamError} `unreachable` or `silent` */
  request(
    method: 'POST' | 'GET' | 'DELETE',
    headers: Readonly<Record<string, string>>,
    body: Uint8Array | null,
    underWay?: Set<UnderWay>,
  ): Promise<HttpResponse> {
    const client = this.#idle.pop() ?? this.#connect();
    const exchange = new HttpExchange((isWhole) => {
      underWay?.delete(exchange);
      if (isWhole && this.#idle.length < IDLE_CONNECTIONS_MAX) this.#idle.push(client);
      else this.#drop(client);
    });
    underWay?.add(exchange);
    const credentials = headers.authorization === undefined ? this.#credentials : {};
    // Headers of clients are passed on, and may be such as nobody can send: the exchange is told of that as well.
    client.dispatch({ method, path: this.#path, headers: { ...credentials, ...headers }, body }, exchange);
    return exchange.answer;
  }

  close(): void {
    for (const client of this.#clients) this.#drop(client);
  }

  #connect(): Client {
    const client = new Client(this.url.origin, this.#options);
    this.#clients.add(client);
    return client;
  }

  #drop(client: Client): void {
    this.#clients.delete(client);
    void client.destroy();
  }
}

/** What stands before the host, as clients of HTTP show it (RFC 7617); one of the two may be empty. */
function credentialsOf({ username, password }: URL): Readonly<Record<string, string>> {
  if (username === '' && password === '') return {};
  const pair = `${decodeURIComponent(username)}:${decodeURIComponent(password)}`;
  return { Authorization: `Basic ${Buffer.from(pair).toString('base64')}` };
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
  // Clients leave a byte order mark out as well.
  return new TextDecoder().decode(Buffer.concat(chunks));
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
