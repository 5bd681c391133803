import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { withDeadline } from './deadline.js';

export interface JsonRpc {
  jsonrpc: '2.0';
  id?: string | number | null;
  method?: string;
  params?: Record<string, unknown>;
  result?: Record<string, unknown>;
  error?: { code: number; message: string; data?: Record<string, unknown> };
}

/** A request that the scripted server has got, and its answer by hand. */
export class UpstreamExchange {
  /** Settles when the other side has hung up, or the answer is over. */
  readonly closed: Promise<void>;

  constructor(
    readonly request: IncomingMessage,
    readonly response: ServerResponse,
    /** Of a POST. */
    readonly message: JsonRpc,
  ) {
    this.closed = new Promise((resolve) => response.once('close', () => resolve()));
  }

  header(name: string): string {
    return String(this.request.headers[name] ?? '');
  }

  /** Begins an event stream. */
  stream(): this {
    this.response.writeHead(200, { 'Content-Type': 'text/event-stream' });
    this.response.flushHeaders();
    return this;
  }

  /** A message on the stream. */
  say(message: JsonRpc, id?: string): this {
    this.raw(`${id === undefined ? '' : `id: ${id}\n`}event: message\ndata: ${JSON.stringify(message)}\n\n`);
    return this;
  }

  /** A notification of progress. */
  progress(progress: number, id?: string): this {
    return this.say(
      { jsonrpc: '2.0', method: 'notifications/progress', params: { progressToken: 1, progress } },
      id,
    );
  }

  /** The answer, as the last message of the stream. */
  finish(result: Record<string, unknown> = {}): void {
    this.say({ jsonrpc: '2.0', id: this.message.id as number, result });
    this.response.end();
  }

  raw(text: string): this {
    this.response.write(text);
    return this;
  }

  /** The answer as JSON. */
  json(result: Record<string, unknown>): void {
    this.answer(200, { jsonrpc: '2.0', id: this.message.id as number, result });
  }

  answer(status: number, body: unknown = '', headers: Record<string, string> = {}): void {
    const text = typeof body === 'string' ? body : JSON.stringify(body);
    const type = typeof body === 'string' ? {} : { 'Content-Type': 'application/json' };
    this.response.writeHead(status, { ...type, ...headers }).end(text);
  }

  /** Ends the connection as a process that dies does. */
  reset(): void {
    this.request.socket.resetAndDestroy();
  }
}

/**
 * An MCP server that does as it is told, and as no SDK would. It begins sessions, accepts notifications and refuses to be
 * listened to by itself; what else comes waits for the test.
 */
export class McpUpstream {
  readonly port: number;
  /** Requests as they came: method of HTTP, and of JSON-RPC where there is one. */
  readonly seen: string[] = [];
  /** Null: it has no sessions. */
  sessionId: string | null = 'upstream-session';
  revision: string | null = null;
  capabilities: Record<string, unknown> = { tools: { listChanged: true }, logging: {} };
  /** Answers a request in place of the test; true: it did. */
  intercept: (exchange: UpstreamExchange) => boolean = () => false;
  /** Whether GET waits for the test. */
  listens = false;

  readonly #server: Server;
  readonly #unclaimed: UpstreamExchange[] = [];
  readonly #waiting: ((exchange: UpstreamExchange) => void)[] = [];
  readonly #listeners: UpstreamExchange[] = [];
  readonly #awaitingListener: ((exchange: UpstreamExchange) => void)[] = [];

  private constructor(server: Server) {
    this.#server = server;
    this.port = (server.address() as AddressInfo).port;
    server.on('request', (request, response) => void this.#received(request, response));
  }

  static async start(port = 0): Promise<McpUpstream> {
    const server = createServer();
    await new Promise<void>((resolve, reject) => {
      server.once('error', reject);
      server.listen(port, '127.0.0.1', resolve);
    });
    return new McpUpstream(server);
  }

  get url(): string {
    return `http://127.0.0.1:${this.port}/mcp`;
  }

  /** The next request that is left to the test. */
  nextCall(): Promise<UpstreamExchange> {
    return next('a call at the server', this.#unclaimed, this.#waiting);
  }

  /** The next GET. */
  nextListener(): Promise<UpstreamExchange> {
    return next('a GET at the server', this.#listeners, this.#awaitingListener);
  }

  async stop(): Promise<void> {
    this.#server.closeAllConnections();
    await new Promise((resolve) => this.#server.close(resolve));
  }

  async #received(request: IncomingMessage, response: ServerResponse): Promise<void> {
    request.on('error', () => undefined);
    response.on('error', () => undefined);
    const text = await bodyOf(request);
    const message = (text === '' ? {} : JSON.parse(text)) as JsonRpc;
    const exchange = new UpstreamExchange(request, response, message);
    this.seen.push(`${request.method} ${message.method ?? ''}`.trim());
    if (this.intercept(exchange)) return;
    if (request.method === 'DELETE') return exchange.answer(200);
    if (request.method === 'GET') {
      if (this.listens) give(exchange, this.#listeners, this.#awaitingListener);
      else exchange.answer(405);
      return;
    }
    if (message.method === 'initialize') return this.#initialize(exchange);
    if (message.method !== undefined && message.id === undefined) return exchange.answer(202);
    if (message.method === undefined && !Array.isArray(message)) return exchange.answer(202);
    give(exchange, this.#unclaimed, this.#waiting);
  }

  #initialize(exchange: UpstreamExchange): void {
    const { id, params } = exchange.message;
    const result = {
      protocolVersion: this.revision ?? params?.protocolVersion,
      capabilities: this.capabilities,
      serverInfo: { name: 'scripted', version: '1' },
    };
    const session = this.sessionId === null ? {} : { 'Mcp-Session-Id': this.sessionId };
    exchange.answer(200, { jsonrpc: '2.0', id, result }, session as Record<string, string>);
  }
}

async function bodyOf(request: IncomingMessage): Promise<string> {
  const chunks: Buffer[] = [];
  for await (const chunk of request) chunks.push(chunk as Buffer);
  return Buffer.concat(chunks).toString();
}

function give<T>(item: T, unclaimed: T[], waiting: ((item: T) => void)[]): void {
  const waiter = waiting.shift();
  if (waiter === undefined) unclaimed.push(item);
  else waiter(item);
}

function next<T>(what: string, unclaimed: T[], waiting: ((item: T) => void)[]): Promise<T> {
  const ready = unclaimed.shift();
  if (ready !== undefined) return Promise.resolve(ready);
  return withDeadline(what, new Promise<T>((resolve) => waiting.push(resolve)));
}
