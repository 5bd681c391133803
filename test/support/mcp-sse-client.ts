import assert from 'node:assert/strict';
import { type HttpResponse, request } from './http.js';
import { initializeRequest } from './mcp-client.js';
import type { JsonRpc } from './mcp-upstream.js';
import { SseSubscription } from './sse-client.js';

export interface McpSseClientOptions {
  readonly path?: string;
  readonly headers?: Readonly<Record<string, string>>;
}

/** A client of MCP over HTTP+SSE, as it was in 2024-11-05, that says exactly what the test wants. */
export class McpSseClient {
  private constructor(
    readonly port: number,
    readonly path: string,
    readonly headers: Readonly<Record<string, string>>,
    /** The connection that began the session. */
    readonly first: SseSubscription,
    readonly endpoint: string,
  ) {}

  /** Opens the event stream, and says nothing yet. */
  static async connect(port: number, options: McpSseClientOptions = {}): Promise<McpSseClient> {
    const { path = '/mcp', headers = {} } = options;
    const first = await openSse(port, path, headers);
    return new McpSseClient(port, path, headers, first, await untilEndpoint(first));
  }

  /** Begins a session. */
  static async open(port: number, options: McpSseClientOptions = {}): Promise<McpSseClient> {
    const client = await McpSseClient.connect(port, options);
    assert.equal((await client.initialize()).status, 202);
    await untilMessage(client.first, ({ id }) => id === 'init');
    assert.equal((await client.notify('notifications/initialized')).status, 202);
    return client;
  }

  initialize(): Promise<HttpResponse> {
    return this.post(JSON.parse(initializeRequest({}).body as string));
  }

  /** What it says besides its name is what browsers say. */
  post(message: unknown, endpoint = this.endpoint): Promise<HttpResponse> {
    const headers = { ...this.headers, Accept: '*/*', 'Content-Type': 'application/json' };
    return request(this.port, { path: endpoint, method: 'POST', headers, body: JSON.stringify(message) });
  }

  async call(id: string | number): Promise<void> {
    const answer = await this.post({ jsonrpc: '2.0', id, method: 'tools/call', params: {} });
    assert.equal(answer.status, 202, answer.text);
  }

  notify(method: string, params: Record<string, unknown> = {}): Promise<HttpResponse> {
    return this.post({ jsonrpc: '2.0', method, params });
  }

  /** Comes back as an `EventSource` does. */
  read(lastEventId: string): Promise<SseSubscription> {
    return openSse(this.port, this.path, { ...this.headers, 'Last-Event-ID': lastEventId });
  }

  /** Comes back as the client of the SDK does: without an id, with the revision that it has agreed on. */
  readAnew(): Promise<SseSubscription> {
    return openSse(this.port, this.path, { ...this.headers, 'MCP-Protocol-Version': '2025-11-25' });
  }

  /** GET, when it is about the status. */
  get(headers: Readonly<Record<string, string>>): Promise<HttpResponse> {
    return request(this.port, {
      path: this.path,
      headers: { ...this.headers, Accept: 'text/event-stream', ...headers },
    });
  }
}

export function sseMessagesOf(stream: SseSubscription): JsonRpc[] {
  return stream.events
    .filter(({ type }) => type === 'message')
    .map(({ data }) => JSON.parse(data) as JsonRpc);
}

/** Resolves with the first message that is meant. */
export async function untilMessage(
  stream: SseSubscription,
  isMeant: (message: JsonRpc) => boolean,
): Promise<JsonRpc> {
  await stream.until('a message', () => sseMessagesOf(stream).some(isMeant));
  return sseMessagesOf(stream).find(isMeant) as JsonRpc;
}

/** Resolves with the endpoint that was named last. */
export async function untilEndpoint(stream: SseSubscription): Promise<string> {
  const named = () => stream.events.findLast(({ type }) => type === 'endpoint')?.data;
  await stream.until('an endpoint', () => named() !== undefined);
  return named() as string;
}

function openSse(
  port: number,
  path: string,
  headers: Readonly<Record<string, string>>,
): Promise<SseSubscription> {
  return SseSubscription.open(port, 'a session', {
    request: { path, headers: { ...headers, Accept: 'text/event-stream' } },
    keepText: true,
  });
}
