import assert from 'node:assert/strict';
import { type HttpRequest, type HttpResponse, request } from './http.js';
import type { JsonRpc } from './mcp-upstream.js';
import { SseSubscription } from './sse-client.js';

const ACCEPT = 'application/json, text/event-stream';

export interface McpClientOptions {
  path?: string;
  /** The revision that it asks for. */
  revision?: string;
  headers?: Readonly<Record<string, string>>;
}

/** A client of MCP that says exactly what the test wants, over raw sockets. */
export class McpClient {
  #lastId = 0;

  private constructor(
    readonly port: number,
    readonly path: string,
    readonly revision: string,
    readonly session: string,
    readonly extra: Readonly<Record<string, string>>,
  ) {}

  /** Begins a session. */
  static async open(port: number, options: McpClientOptions = {}): Promise<McpClient> {
    const { path = '/mcp', revision = '2025-11-25', headers = {} } = options;
    const answer = await request(port, initializeRequest(options));
    assert.equal(answer.status, 200, answer.text);
    const session = answer.header('mcp-session-id');
    assert.ok(session !== undefined, 'no session');
    const client = new McpClient(port, path, revision, session, headers);
    assert.equal((await client.notify('notifications/initialized')).status, 202);
    return client;
  }

  /** The same session, by way of another broker. */
  at(port: number): McpClient {
    return new McpClient(port, this.path, this.revision, this.session, this.extra);
  }

  get headers(): Record<string, string> {
    return { 'Mcp-Session-Id': this.session, 'MCP-Protocol-Version': this.revision, ...this.extra };
  }

  newId(): number {
    return ++this.#lastId;
  }

  /** Sends a message; the answer whole. */
  post(message: unknown, headers: Readonly<Record<string, string>> = {}): Promise<HttpResponse> {
    return request(this.port, this.postRequest(message, headers));
  }

  notify(method: string, params: Record<string, unknown> = {}): Promise<HttpResponse> {
    return this.post({ jsonrpc: '2.0', method, params });
  }

  /** Sends a request; the answer as it comes. */
  call(
    id: string | number,
    method = 'tools/call',
    params: Record<string, unknown> = {},
  ): Promise<SseSubscription> {
    return SseSubscription.open(this.port, 'a call', {
      request: this.postRequest({ jsonrpc: '2.0', id, method, params }),
      keepText: true,
    });
  }

  /** GET, with or without `Last-Event-ID`; fails unless it is accepted. */
  async read(lastEventId?: string): Promise<SseSubscription> {
    return SseSubscription.open(this.port, 'a session', {
      request: this.#getRequest(lastEventId),
      keepText: true,
    });
  }

  /** GET, when it is about the status. */
  async get(lastEventId?: string, headers: Readonly<Record<string, string>> = {}): Promise<HttpResponse> {
    const { headers: own, ...rest } = this.#getRequest(lastEventId);
    return request(this.port, { ...rest, headers: { ...own, ...headers } });
  }

  delete(): Promise<HttpResponse> {
    return request(this.port, { method: 'DELETE', path: this.path, headers: this.headers });
  }

  postRequest(message: unknown, headers: Readonly<Record<string, string>> = {}): HttpRequest {
    return {
      path: this.path,
      headers: { ...this.headers, Accept: ACCEPT, 'Content-Type': 'application/json', ...headers },
      body: JSON.stringify(message),
    };
  }

  #getRequest(lastEventId?: string): HttpRequest {
    const cursor = lastEventId === undefined ? {} : { 'Last-Event-ID': lastEventId };
    return { path: this.path, headers: { ...this.headers, Accept: 'text/event-stream', ...cursor } };
  }
}

export function initializeRequest({
  path = '/mcp',
  revision = '2025-11-25',
  headers = {},
}: McpClientOptions): HttpRequest {
  const params = { protocolVersion: revision, capabilities: {}, clientInfo: { name: 'test', version: '1' } };
  return {
    path,
    headers: { Accept: ACCEPT, 'Content-Type': 'application/json', ...headers },
    body: JSON.stringify({ jsonrpc: '2.0', id: 'init', method: 'initialize', params }),
  };
}

/** The messages of a stream: what primes it is none. */
export function messagesOf(stream: SseSubscription): JsonRpc[] {
  return stream.events.filter(({ data }) => data !== '').map(({ data }) => JSON.parse(data) as JsonRpc);
}

/** The progress that a stream told of, in its order. */
export function progressOf(stream: SseSubscription): unknown[] {
  return messagesOf(stream)
    .filter(({ method }) => method === 'notifications/progress')
    .map(({ params }) => params?.progress);
}

/** Resolves when so many messages have come. */
export async function untilMessages(stream: SseSubscription, count: number): Promise<JsonRpc[]> {
  await stream.until(`${count} messages`, () => messagesOf(stream).length >= count);
  return messagesOf(stream);
}

/** A numbered notification that a server sends of its own accord. */
export function changed(n: number): JsonRpc {
  return { jsonrpc: '2.0', method: 'notifications/message', params: { n } };
}

/** The numbers of such notifications, as a stream brought them. */
export function numbersOf(stream: SseSubscription): unknown[] {
  return messagesOf(stream).map(({ params }) => params?.n);
}

/** The id of the first message; what primes a stream has one of its own. */
export function firstMessageId({ events }: SseSubscription): string {
  return events.find(({ data }) => data !== '')?.id as string;
}

/** What a client gets that comes back to a call, when all of it has come. */
export async function restOf(client: McpClient, lastEventId: string | undefined): Promise<JsonRpc[]> {
  const again = await client.read(lastEventId);
  assert.equal(await again.untilEnded(), 'end');
  return messagesOf(again);
}
