import assert from 'node:assert/strict';
import { type ClientRequest, request as httpRequest, type IncomingMessage } from 'node:http';
import { withDeadline } from '../support/deadline.js';
import { SseParser } from '../support/sse-parser.js';

export const REVISION = '2025-11-25';

export interface JsonRpc {
  jsonrpc: '2.0';
  id?: string | number;
  method?: string;
  params?: Record<string, unknown>;
  result?: Record<string, unknown>;
  error?: { code: number; message: string; data?: Record<string, unknown> };
}

/** A message as it came, with its id. */
export interface Received {
  id: string;
  message: JsonRpc;
}

/** One answer of a Streamable HTTP server, read as it comes. */
export class McpAnswer {
  readonly messages: Received[] = [];
  /** Ids without a message, as primings are. */
  readonly primings: string[] = [];
  retryMs: number | null = null;
  readonly status: number;
  readonly headers: IncomingMessage['headers'];
  /** Resolves when the answer has ended, properly or not. */
  readonly ended: Promise<void>;
  readonly #request: ClientRequest;
  readonly #parser: SseParser;
  #text = '';
  #changed: () => void = () => undefined;
  #isOver = false;

  constructor(request: ClientRequest, response: IncomingMessage) {
    this.#request = request;
    this.status = response.statusCode ?? 0;
    this.headers = response.headers;
    this.#parser = new SseParser({
      onEvent: ({ id, data, type }) => {
        assert.equal(type, 'message');
        // A priming has a data line, and nothing in it.
        if (data === '') this.primings.push(id);
        else this.messages.push({ id, message: JSON.parse(data) as JsonRpc });
      },
      onIdOnly: (id) => this.primings.push(id),
      onRetry: (ms) => {
        this.retryMs = ms;
      },
      onComment: () => undefined,
      onLineWithoutColon: (line) => assert.fail(`a line without a colon: ${line}`),
    });
    const isEvents = this.headers['content-type']?.startsWith('text/event-stream') === true;
    response.on('data', (chunk: Buffer) => {
      if (isEvents) this.#parser.push(chunk);
      else this.#text += chunk.toString();
      this.#changed();
    });
    response.on('error', () => undefined);
    this.ended = new Promise((resolve) => {
      response.once('close', () => {
        this.#isOver = true;
        if (!isEvents && response.complete && this.#text.startsWith('{')) {
          this.messages.push({ id: '', message: JSON.parse(this.#text) as JsonRpc });
        }
        this.#changed();
        resolve();
      });
    });
  }

  /** What a client that breaks now would come back with. */
  get lastEventId(): string {
    return this.#parser.lastEventId;
  }

  get text(): string {
    return this.#text;
  }

  get session(): string {
    const id = this.headers['mcp-session-id'];
    assert.ok(typeof id === 'string', 'no session');
    return id;
  }

  /** The response to a request; fails when the answer ends without it. */
  async result(id: string | number): Promise<JsonRpc> {
    const { message } = await this.until(
      (received) => received.message.id === id && !received.message.method,
    );
    return message;
  }

  /** Waits for so many messages. */
  async count(n: number): Promise<Received[]> {
    await this.#when(`${n} messages`, () => this.messages.length >= n);
    return this.messages;
  }

  /** Waits for so many of one method; what else comes is not looked at. */
  async countOf(method: string, n: number): Promise<Received[]> {
    const some = () => this.messages.filter(({ message }) => message.method === method);
    await this.#when(`${n} messages of ${method}`, () => some().length >= n);
    return some();
  }

  until(test: (received: Received) => boolean): Promise<Received> {
    return this.#when('a message', () => this.messages.find(test));
  }

  priming(): Promise<string> {
    return this.#when('a priming id', () => this.primings[0]);
  }

  /** Breaks the connection, as a network does. */
  cut(): void {
    this.#request.destroy();
  }

  async #when<T>(what: string, probe: () => T | undefined | false): Promise<T> {
    for (;;) {
      const found = probe();
      if (found !== undefined && found !== false) return found;
      assert.ok(!this.#isOver, `the answer ended without ${what}: ${this.status} ${this.#text}`);
      await withDeadline(
        what,
        new Promise<void>((resolve) => {
          this.#changed = resolve;
        }),
      );
    }
  }
}

export interface McpRequest {
  readonly method?: 'GET' | 'POST' | 'DELETE';
  readonly headers?: Readonly<Record<string, string>>;
  readonly body?: object | string;
}

/** One request on a connection of its own. */
export function mcpRequest(url: string, { method = 'POST', headers, body }: McpRequest): Promise<McpAnswer> {
  return withDeadline(
    'the head of an answer',
    new Promise((resolve, reject) => {
      const request = httpRequest(url, {
        method,
        agent: false,
        headers: {
          Accept: method === 'GET' ? 'text/event-stream' : 'application/json, text/event-stream',
          ...(body === undefined ? {} : { 'Content-Type': 'application/json' }),
          ...headers,
        },
      });
      request.once('response', (response) => resolve(new McpAnswer(request, response)));
      request.on('error', reject);
      request.end(typeof body === 'object' ? JSON.stringify(body) : body);
    }),
  );
}

/** A client that does what it is told, and nothing by itself. */
export class RawSession {
  readonly url: string;
  readonly id: string;
  readonly revision: string;

  private constructor(url: string, id: string, revision: string) {
    this.url = url;
    this.id = id;
    this.revision = revision;
  }

  static async open(url: string, revision = REVISION): Promise<RawSession> {
    const answer = await mcpRequest(url, {
      body: {
        jsonrpc: '2.0',
        id: 0,
        method: 'initialize',
        params: {
          protocolVersion: revision,
          capabilities: {},
          clientInfo: { name: 'raw', version: '1.0.0' },
        },
      },
    });
    await answer.result(0);
    const session = new RawSession(url, answer.session, revision);
    answer.cut();
    const noted = await session.post({ jsonrpc: '2.0', method: 'notifications/initialized' });
    assert.equal(noted.status, 202, noted.text);
    return session;
  }

  post(body: object): Promise<McpAnswer> {
    return mcpRequest(this.url, { headers: this.headers(), body });
  }

  /** Calls the counting tool, with its label as the progress token. */
  call(id: string | number, name: string, given: Record<string, unknown>): Promise<McpAnswer> {
    const params = { name, arguments: given, _meta: { progressToken: String(given.label ?? id) } };
    return this.post({ jsonrpc: '2.0', id, method: 'tools/call', params });
  }

  get(lastEventId?: string): Promise<McpAnswer> {
    const resumed: Record<string, string> = lastEventId === undefined ? {} : { 'Last-Event-ID': lastEventId };
    return mcpRequest(this.url, { method: 'GET', headers: { ...this.headers(), ...resumed } });
  }

  delete(): Promise<McpAnswer> {
    return mcpRequest(this.url, { method: 'DELETE', headers: this.headers() });
  }

  headers(): Record<string, string> {
    return { 'MCP-Session-Id': this.id, 'MCP-Protocol-Version': this.revision };
  }
}
