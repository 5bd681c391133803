import type { TemplatedApp } from 'uWebSockets.js';
import assert from 'node:assert/strict';
import type { Prng } from '../support/prng.js';
import type { Connection, ResponseHead } from './connection.js';
import type { Schedule, Thread } from './schedule.js';

export interface Request {
  readonly method: 'get' | 'post' | 'put' | 'del' | 'head';
  readonly path: string;
  readonly query?: string | undefined;
  readonly headers?: Readonly<Record<string, string>>;
  readonly body?: Uint8Array | undefined;
}

type Handler = (res: SimulatedResponse, req: SimulatedRequest) => void;

interface Route {
  readonly method: string;
  readonly pattern: RegExp;
  readonly handler: Handler;
}

/** The request object of the library: it is of no use once its handler has returned. */
class SimulatedRequest {
  #expired = false;
  readonly #request: Request;
  readonly #parameters: readonly string[];

  constructor(request: Request, parameters: readonly string[]) {
    this.#request = request;
    this.#parameters = parameters;
  }

  expire(): void {
    this.#expired = true;
  }

  getMethod(): string {
    return this.#alive.method;
  }

  getUrl(): string {
    return this.#alive.path;
  }

  getQuery(): string | undefined {
    return this.#alive.query;
  }

  getHeader(name: string): string {
    return this.#alive.headers?.[name] ?? '';
  }

  getParameter(index: number): string {
    assert.ok(this.#alive);
    return this.#parameters[index] ?? '';
  }

  get #alive(): Request {
    assert.ok(!this.#expired, 'the library takes its request back when the handler returns');
    return this.#request;
  }
}

/** The response object of the library, as strict as it is: it may not be touched after its end or the peer's. */
export class SimulatedResponse {
  readonly #connection: Connection;
  #status = 200;
  readonly #headers: Record<string, string> = {};
  #headWritten = false;
  #over = false;
  #abortHandlers: (() => void)[] = [];
  #writable: ((offset: number) => boolean) | null = null;
  #data: ((chunk: ArrayBuffer, isLast: boolean) => void) | null = null;

  constructor(connection: Connection) {
    this.#connection = connection;
    connection.serverEnd = {
      writable: () => this.#writable?.(0),
      aborted: () => this.#aborted(),
    };
  }

  /** Whether nothing would ever come of this request: not answered, and nobody who is told when the peer is gone. */
  get isForgotten(): boolean {
    return !this.#over && this.#abortHandlers.length === 0;
  }

  writeStatus(status: string): this {
    this.#touch();
    this.#status = Number(status.slice(0, 3));
    return this;
  }

  writeHeader(name: string, value: string): this {
    this.#touch();
    assert.ok(!this.#headWritten, 'no header comes after the body has begun');
    this.#headers[name.toLowerCase()] = value;
    return this;
  }

  write(chunk: Uint8Array | string): boolean {
    this.#touch();
    this.#writeHead();
    return this.#connection.write(Buffer.from(chunk as string));
  }

  end(body?: Uint8Array | string): this {
    this.#touch();
    this.#writeHead();
    if (body !== undefined && body.length > 0) this.#connection.write(Buffer.from(body as string));
    return this.#finish();
  }

  endWithoutBody(): this {
    this.#touch();
    this.#writeHead();
    return this.#finish();
  }

  close(): this {
    this.#touch();
    this.#connection.close();
    return this;
  }

  cork(callback: () => void): this {
    this.#touch();
    callback();
    return this;
  }

  onAborted(handler: () => void): this {
    this.#touch();
    this.#abortHandlers.push(handler);
    return this;
  }

  onWritable(handler: (offset: number) => boolean): this {
    this.#touch();
    this.#writable = handler;
    return this;
  }

  onData(handler: (chunk: ArrayBuffer, isLast: boolean) => void): this {
    this.#touch();
    this.#data = handler;
    return this;
  }

  /** A piece of the request's body. */
  data(piece: Uint8Array, isLast: boolean): void {
    if (this.#over) return;
    const chunk = new Uint8Array(piece).buffer;
    this.#data?.(chunk, isLast);
    // The library takes the bytes back.
    new Uint8Array(chunk).fill(0xff);
  }

  #writeHead(): void {
    if (this.#headWritten) return;
    this.#headWritten = true;
    const head: ResponseHead = { status: this.#status, headers: this.#headers };
    this.#connection.write(Buffer.from(JSON.stringify(head)), head);
  }

  #finish(): this {
    this.#over = true;
    this.#connection.finish();
    return this;
  }

  #aborted(): void {
    if (this.#over) return;
    this.#over = true;
    for (const handler of this.#abortHandlers) handler();
  }

  #touch(): void {
    assert.ok(!this.#over, 'a response is not touched after its end, or after the peer is gone');
  }
}

/** The library's app on one edge: what listens there. */
export class SimulatedApp {
  readonly #schedule: Schedule;
  readonly #prng: Prng;
  readonly #thread: Thread;
  readonly #routes: Route[] = [];
  #filter: (res: null, change: number) => void = () => undefined;

  constructor(schedule: Schedule, prng: Prng, thread: Thread) {
    this.#schedule = schedule;
    this.#prng = prng;
    this.#thread = thread;
  }

  get thread(): Thread {
    return this.#thread;
  }

  /** As the broker's routes want it. What they do not use is not here, and fails at once. */
  get app(): TemplatedApp {
    const add =
      (method: string) =>
      (pattern: string, handler: Handler): void => {
        const source = pattern.replace('/*', '/.*').replaceAll(/:[a-z]+/g, '([^/]+)');
        this.#routes.push({ method, pattern: new RegExp(`^${source}$`), handler });
      };
    const methods = ['get', 'head', 'post', 'put', 'del', 'options', 'any'];
    return {
      // WebSockets have an upgrade and messages of their own, which are not simulated.
      ws: () => undefined,
      ...Object.fromEntries(methods.map((method) => [method, add(method)])),
      filter: (filter: (res: null, change: number) => void) => {
        this.#filter = filter;
      },
    } as unknown as TemplatedApp;
  }

  connected(): void {
    this.#filter(null, 1);
  }

  disconnected(): void {
    this.#filter(null, -1);
  }

  /** A request has arrived, its body not yet, or not all of it. */
  receive(connection: Connection, request: Request): void {
    const route = this.#routes.find(
      ({ method, pattern }) => (method === request.method || method === 'any') && pattern.test(request.path),
    );
    assert.ok(route !== undefined, 'the last route takes everything');
    const res = new SimulatedResponse(connection);
    const req = new SimulatedRequest(request, route.pattern.exec(request.path)?.slice(1) ?? []);
    route.handler(res, req);
    req.expire();
    assert.ok(!res.isForgotten, 'a handler answers, or has itself told of the end of its peer');
    this.#receiveBody(connection, res, request.body ?? new Uint8Array(0));
  }

  /** The first piece comes with the head, the others later, cut anywhere. */
  #receiveBody(connection: Connection, res: SimulatedResponse, body: Uint8Array): void {
    const cut = this.#prng.chance(0.7) ? body.length : this.#prng.below(body.length + 1);
    res.data(body.subarray(0, cut), cut === body.length);
    if (cut === body.length) return;
    this.#schedule.after(this.#thread, this.#prng.below(20), () => {
      if (connection.serverOpen) this.#receiveBody(connection, res, body.subarray(cut));
    });
  }
}
