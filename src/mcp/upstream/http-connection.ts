/**
 * One connection to a server behind the front, with one request at a time. Node's own client takes ten times as long for
 * a small call as sending and reading it does, which is most of what a call through the front would cost.
 */

import { connect as connectTcp, isIP, type Socket } from 'node:net';
import { connect as connectTls } from 'node:tls';
import { HttpResponse } from './http-response.js';
import { HttpResponseParser, ResponseError, type ResponseHead } from './http-response-parser.js';
import { UpstreamError } from './upstream.js';

/**
 * How long a connection is kept that nobody uses. Less than the five seconds after which common servers hang up, for a
 * request that meets that hang-up is lost and may not be sent again.
 */
const IDLE_MS = 3000;
/** A server that names its own patience hangs up so much earlier than it says, at the worst. */
const HINT_MARGIN_MS = 1000;
const HINT = /(?:^|[ ,])timeout=(\d{1,6})/i;

interface Exchange {
  readonly answered: (response: HttpResponse) => void;
  readonly failed: (error: UpstreamError) => void;
  readonly over: () => void;
  response: HttpResponse | null;
}

export interface ConnectionOptions {
  readonly url: URL;
  /** How long nothing may come during a request. */
  readonly silenceMs: number;
  /** It can take another request. */
  readonly idle: (connection: HttpConnection) => void;
  readonly closed: (connection: HttpConnection) => void;
}

export class HttpConnection {
  readonly #options: ConnectionOptions;
  readonly #socket: Socket;
  readonly #parser: HttpResponseParser;
  #exchange: Exchange | null = null;
  #keptMs = IDLE_MS;
  #isClosed = false;

  constructor(options: ConnectionOptions) {
    this.#options = options;
    this.#socket = open(options.url);
    this.#socket.setNoDelay(true);
    this.#parser = new HttpResponseParser({
      head: (head) => this.#begin(head),
      body: (bytes) => this.#exchange?.response?.push(bytes),
      end: (reusable) => this.#end(reusable),
    });
    this.#socket.on('data', (bytes: Buffer) => this.#received(bytes));
    this.#socket.on('end', () => {
      this.#parser.close();
      this.destroy();
    });
    this.#socket.on('timeout', () => this.#close('silent'));
    // What it was is of no use to anybody; `close` follows.
    this.#socket.on('error', () => undefined);
    this.#socket.on('close', () => this.destroy());
  }

  /**
   * @param head of the request, in Latin-1.
   * @param over called when nothing more comes of it, whether it went well or not.
   * @throws {UpstreamError} `unreachable` or `silent`
   */
  send(head: string, body: Uint8Array | null, over: () => void): Promise<HttpResponse> {
    this.#socket.setTimeout(this.#options.silenceMs);
    const bytes = Buffer.from(head, 'latin1');
    return new Promise((answered, failed) => {
      this.#exchange = { answered, failed, over, response: null };
      this.#socket.write(body === null ? bytes : Buffer.concat([bytes, body]));
    });
  }

  destroy(): void {
    this.#close('broken');
  }

  #received(bytes: Buffer): void {
    try {
      this.#parser.push(bytes);
    } catch (error) {
      if (!(error instanceof ResponseError)) throw error;
      this.destroy();
    }
  }

  #begin(head: ResponseHead): void {
    const exchange = this.#exchange;
    if (exchange === null) throw new ResponseError('an answer that nobody asked for');
    this.#keptMs = keptFor(head.headers.get('keep-alive'));
    exchange.response = new HttpResponse(head, {
      pause: () => this.#socket.pause(),
      resume: () => this.#socket.resume(),
      abandon: () => {
        if (this.#exchange === exchange) this.destroy();
      },
    });
    exchange.answered(exchange.response);
  }

  #end(reusable: boolean): void {
    const exchange = this.#exchange as Exchange;
    this.#exchange = null;
    exchange.response?.end('end');
    exchange.over();
    // A server that answers before it has read the request would take the rest of it for the next one.
    if (!reusable || this.#socket.writableLength > 0 || this.#keptMs === 0) return this.destroy();
    this.#socket.setTimeout(this.#keptMs);
    this.#socket.resume();
    this.#options.idle(this);
  }

  #close(reason: 'silent' | 'broken'): void {
    if (this.#isClosed) return;
    this.#isClosed = true;
    const exchange = this.#exchange;
    this.#exchange = null;
    this.#socket.destroy();
    this.#options.closed(this);
    if (exchange === null) return;
    exchange.response?.end(new UpstreamError(reason));
    exchange.failed(new UpstreamError(reason === 'silent' ? 'silent' : 'unreachable'));
    exchange.over();
  }
}

function open({ protocol, hostname, port }: URL): Socket {
  const host = hostname.replace(/^\[|\]$/g, '');
  if (protocol === 'http:') return connectTcp({ host, port: Number(port || 80) });
  const servername = isIP(host) === 0 ? { servername: host } : {};
  return connectTls({ host, port: Number(port || 443), ...servername, ALPNProtocols: ['http/1.1'] });
}

/** How long a connection is kept for later, by what its server says of that. */
function keptFor(hint: string | undefined): number {
  const [, seconds] = HINT.exec(hint ?? '') ?? [];
  if (seconds === undefined) return IDLE_MS;
  return Math.min(IDLE_MS, Math.max(0, Number(seconds) * 1000 - HINT_MARGIN_MS));
}
