import { connect, type Socket } from 'node:net';
import { DeadlineError, withDeadline } from './deadline.js';
import { HttpResponseParser, type ResponseHead } from './http-response-parser.js';

export interface HttpRequest {
  /** Default: GET, or POST with a body. */
  method?: string;
  path: string;
  headers?: Readonly<Record<string, string>>;
  body?: string | Uint8Array;
}

export class HttpResponse {
  constructor(
    readonly head: ResponseHead,
    readonly body: Buffer,
  ) {}

  get status(): number {
    return this.head.status;
  }

  get text(): string {
    return this.body.toString('utf8');
  }

  header(name: string): string | undefined {
    return this.head.headers.get(name.toLowerCase());
  }

  json<T = Record<string, unknown>>(): T {
    return JSON.parse(this.text) as T;
  }
}

/** The bytes of a request. Nothing is checked or escaped, so that a test can send what no client library would. */
export function encodeRequest({ method, path, headers = {}, body }: HttpRequest): Buffer {
  const payload = typeof body === 'string' ? Buffer.from(body) : body;
  const lines = [`${method ?? (payload === undefined ? 'GET' : 'POST')} ${path} HTTP/1.1`, 'Host: 127.0.0.1'];
  for (const [name, value] of Object.entries(headers)) lines.push(`${name}: ${value}`);
  if (payload !== undefined) lines.push(`Content-Length: ${payload.length}`);
  const head = Buffer.from(`${lines.join('\r\n')}\r\n\r\n`, 'latin1');
  return payload === undefined ? head : Buffer.concat([head, payload]);
}

/** One raw connection: whole requests in sequence or pipelined, or any bytes at all. */
export class HttpConnection {
  readonly #parser: HttpResponseParser;
  readonly #waiting: { resolve: (response: HttpResponse) => void; reject: (error: Error) => void }[] = [];
  readonly #unclaimed: HttpResponse[] = [];
  #head: ResponseHead | undefined;
  #body: Buffer[] = [];
  #failure: Error | undefined;
  /** Settles when the socket is gone, however that came about. */
  readonly closed: Promise<void>;

  private constructor(readonly socket: Socket) {
    this.#parser = new HttpResponseParser({
      onHead: (head) => {
        this.#head = head;
        this.#body = [];
      },
      onBody: (chunk) => this.#body.push(chunk),
      onEnd: () => this.#deliver(),
    });
    this.closed = new Promise((resolve) => socket.once('close', () => resolve()));
    socket.on('error', (error) => this.#fail(error));
    socket.on('data', (chunk) => this.#receive(chunk));
    socket.on('end', () => this.#parser.finish());
    socket.on('close', () => this.#fail(new Error('the connection closed before the response was complete')));
  }

  static async open(port: number): Promise<HttpConnection> {
    const socket = connect({ host: '127.0.0.1', port, noDelay: true });
    const connection = new HttpConnection(socket);
    await withDeadline(
      `a connection to port ${port}`,
      new Promise<void>((resolve, reject) => {
        socket.once('connect', resolve);
        socket.once('error', reject);
      }),
    );
    return connection;
  }

  send(bytes: string | Uint8Array): void {
    this.socket.write(bytes);
  }

  async request(request: HttpRequest): Promise<HttpResponse> {
    const [response] = await this.pipeline([request]);
    if (response === undefined) throw new Error('no response');
    return response;
  }

  /** All requests in one write, before any answer is read. */
  async pipeline(requests: readonly HttpRequest[]): Promise<HttpResponse[]> {
    for (const request of requests) {
      this.#parser.expectResponseTo(request.method ?? (request.body === undefined ? 'GET' : 'POST'));
    }
    this.send(Buffer.concat(requests.map(encodeRequest)));
    return Promise.all(
      requests.map((request) => this.nextResponse(`${request.method ?? ''} ${request.path}`)),
    );
  }

  nextResponse(what = 'bytes sent by hand'): Promise<HttpResponse> {
    const ready = this.#unclaimed.shift();
    if (ready !== undefined) return Promise.resolve(ready);
    if (this.#failure !== undefined) return Promise.reject(this.#failure);
    const response = new Promise<HttpResponse>((resolve, reject) => this.#waiting.push({ resolve, reject }));
    return withDeadline(`the response to ${what}`, response);
  }

  /** Ends our side politely; the peer may still answer what it has. */
  end(): void {
    this.socket.end();
  }

  /** Gone at once. `reset` sends RST, as a crashed client's kernel does. */
  destroy({ reset = false } = {}): void {
    if (reset) this.socket.resetAndDestroy();
    else this.socket.destroy();
  }

  #receive(chunk: Buffer): void {
    try {
      this.#parser.push(chunk);
    } catch (error) {
      this.#fail(error as Error);
      this.socket.destroy();
    }
  }

  #deliver(): void {
    if (this.#head === undefined) throw new Error('a body without a head');
    const response = new HttpResponse(this.#head, Buffer.concat(this.#body));
    this.#head = undefined;
    const waiter = this.#waiting.shift();
    if (waiter === undefined) this.#unclaimed.push(response);
    else waiter.resolve(response);
  }

  #fail(error: Error): void {
    this.#failure ??= error;
    for (const waiter of this.#waiting.splice(0)) waiter.reject(this.#failure);
  }
}

/** One request on a connection of its own, so that the kernel may hand each to another edge. */
export async function request(port: number, options: HttpRequest): Promise<HttpResponse> {
  const connection = await HttpConnection.open(port);
  try {
    return await connection.request(options);
  } finally {
    connection.destroy();
  }
}

/**
 * Sends bytes as they are and then, with `end`, nothing more ever. Returns the first response, or undefined if the peer
 * hangs up without one.
 */
export async function exchangeRaw(
  port: number,
  bytes: string | Uint8Array,
  { end = false } = {},
): Promise<HttpResponse | undefined> {
  const connection = await HttpConnection.open(port);
  try {
    connection.send(bytes);
    if (end) connection.end();
    return await connection.nextResponse();
  } catch (error) {
    if (error instanceof DeadlineError) throw error;
    return undefined;
  } finally {
    connection.destroy();
  }
}
