import { randomUUID } from 'node:crypto';
import { once } from 'node:events';
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { NodeStreamableHTTPServerTransport } from '@modelcontextprotocol/node';
import type { Server as Server1 } from '@modelcontextprotocol/sdk/server/index.js';
import { McpServer as McpServer1 } from '@modelcontextprotocol/sdk/server/mcp.js';
import { StreamableHTTPServerTransport } from '@modelcontextprotocol/sdk/server/streamableHttp.js';
import { McpServer as McpServer2 } from '@modelcontextprotocol/server';
import { z } from 'zod';
import type { GaplessEventStore } from '#gapless/mcp-sdk/mcp-sdk.js';
import { count } from './counting-tool.js';
import { Gates } from './gates.js';

export type SdkVersion = 1 | 2;

export interface SdkServerOptions {
  readonly version: SdkVersion;
  /** Absent: no event store. */
  readonly storeOf?: (session: string) => GaplessEventStore;
  readonly gates?: Gates;
  readonly port?: number;
  /** What each session is served by, instead of the counting tool; of version 1. */
  readonly serverOf?: () => Server1;
  /** A session that this process does not know is taken up again, and not 404. */
  readonly takesUpSessions?: boolean;
}

interface Session {
  readonly transport: StreamableHTTPServerTransport | NodeStreamableHTTPServerTransport;
  announce(): Promise<void>;
}

const COUNT_SHAPE = {
  label: z.string(),
  steps: z.number(),
  holdAfter: z.number().optional(),
  padding: z.number().optional(),
};

/** A server of the official SDK, with sessions, as its documentation has it. */
export class SdkServer {
  readonly gates: Gates;
  readonly #options: SdkServerOptions;
  readonly #http: Server;
  readonly #sessions = new Map<string, Session>();

  private constructor(options: SdkServerOptions) {
    this.#options = options;
    this.gates = options.gates ?? new Gates();
    this.#http = createServer((request, response) => {
      this.#handle(request, response).catch((error: unknown) => {
        response.destroy(error as Error);
      });
    });
  }

  static async start(options: SdkServerOptions): Promise<SdkServer> {
    const server = new SdkServer(options);
    server.#http.listen(options.port ?? 0, '127.0.0.1');
    await once(server.#http, 'listening');
    return server;
  }

  get port(): number {
    return (this.#http.address() as AddressInfo).port;
  }

  get url(): string {
    return `http://127.0.0.1:${this.port}/mcp`;
  }

  /** A change that belongs to no call, told to one session. */
  async announce(session: string): Promise<void> {
    await this.#sessions.get(session)?.announce();
  }

  async stop(): Promise<void> {
    for (const { transport } of this.#sessions.values()) await transport.close();
    this.#http.closeAllConnections();
    this.#http.close();
    await once(this.#http, 'close');
  }

  async #handle(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const id = request.headers['mcp-session-id'];
    const session = await this.#sessionOf(id as string | undefined);
    if (session === null) {
      response.writeHead(404).end();
      return;
    }
    await session.transport.handleRequest(request, response);
  }

  async #sessionOf(id: string | undefined): Promise<Session | null> {
    if (id === undefined) return this.#open(randomUUID());
    const known = this.#sessions.get(id);
    if (known !== undefined) return known;
    if (this.#options.takesUpSessions !== true) return null;
    const session = await this.#open(id);
    await initialize(session, this.port);
    return session;
  }

  async #open(id: string): Promise<Session> {
    const store = this.#options.storeOf?.(id);
    const options = {
      sessionIdGenerator: () => id,
      retryInterval: 20,
      onsessionclosed: async () => {
        this.#sessions.delete(id);
        await store?.delete();
      },
    };
    const session =
      this.#options.version === 1
        ? await this.#connect1({ ...options, ...(store && { eventStore: store }) }, store)
        : await this.#connect2({ ...options, ...(store && { eventStore: store }) }, store);
    this.#sessions.set(id, session);
    return session;
  }

  async #connect1(
    options: ConstructorParameters<typeof StreamableHTTPServerTransport>[0],
    store: GaplessEventStore | undefined,
  ): Promise<Session> {
    const transport = new StreamableHTTPServerTransport(options);
    store?.watch(transport);
    const other = this.#options.serverOf?.();
    if (other !== undefined) {
      await other.connect(transport as Parameters<typeof other.connect>[0]);
      return { transport, announce: async () => undefined };
    }
    const server = new McpServer1({ name: 'counting', version: '1.0.0' });
    server.registerTool('count', { inputSchema: COUNT_SHAPE }, (given, { _meta, sendNotification }) =>
      count(given, { token: _meta?.progressToken, notify: sendNotification, gates: this.gates }),
    );
    await server.connect(transport as Parameters<typeof server.connect>[0]);
    return { transport, announce: () => server.server.sendToolListChanged() };
  }

  async #connect2(
    options: ConstructorParameters<typeof NodeStreamableHTTPServerTransport>[0],
    store: GaplessEventStore | undefined,
  ): Promise<Session> {
    const transport = new NodeStreamableHTTPServerTransport(options);
    store?.watch(transport);
    const server = new McpServer2({ name: 'counting', version: '1.0.0' });
    server.registerTool('count', { inputSchema: z.object(COUNT_SHAPE) }, (given, { mcpReq }) =>
      count(given, {
        token: mcpReq._meta?.progressToken,
        notify: mcpReq.notify,
        gates: this.gates,
      }),
    );
    await server.connect(transport);
    return { transport, announce: () => server.server.sendToolListChanged() };
  }
}

/** What a client said once to another process is said again to this one: the SDK knows no other way. */
async function initialize({ transport }: Session, port: number): Promise<void> {
  const server = createServer((request, response) => void transport.handleRequest(request, response));
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port: own } = server.address() as AddressInfo;
  const answer = await fetch(`http://127.0.0.1:${own}/mcp`, {
    method: 'POST',
    headers: { 'Content-Type': 'application/json', Accept: 'application/json, text/event-stream' },
    body: JSON.stringify({
      jsonrpc: '2.0',
      id: `taken up at ${port}`,
      method: 'initialize',
      params: {
        protocolVersion: '2025-11-25',
        capabilities: {},
        clientInfo: { name: 'again', version: '0' },
      },
    }),
  });
  await answer.text();
  server.close();
}
