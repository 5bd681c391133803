/**
 * The broker, as the console asks it: by `gapless/client` for what programs ask for too, and by requests of its own for
 * what only operators do.
 */

import { GaplessClient, type GaplessError, type StreamState } from '../../client/client.js';
import { errorOf } from '../../client/client-error.js';
import { Connection, streamPath } from '../../client/connection.js';
import type { ActivityAnswer } from '../../wire/happening.js';

/** A stream in the list, with how far its readers are behind (contract 2.2). */
export interface ListedStream extends StreamState {
  readonly lag: number | null;
  readonly ackedLag: number;
}

/** A subscription (contract 2.5). */
export interface Reader {
  readonly by: string;
  readonly state: string;
  readonly written: number;
  readonly delivered: number;
  readonly principal: string;
}

export interface NamedSubscriber {
  readonly name: string;
  readonly acked: string;
  readonly lag: number | null;
}

/** A stream and all who read it (contract 2.5). */
export interface ReadStream extends StreamState {
  readonly named: readonly NamedSubscriber[];
  readonly readers: {
    readonly total: number;
    readonly complete: boolean;
    readonly slowest: readonly Reader[];
  };
}

/** An MCP server behind the front, and how it is used (contract 10). */
export interface McpServer {
  readonly path: string;
  readonly sessions: number;
  readonly calls: number;
  readonly readers: number;
  readonly refusedResumes: number;
}

export class Broker {
  readonly client: GaplessClient;
  readonly #connection: Connection;

  /** @param token null: none is needed. */
  constructor(token: string | null) {
    // Where the console was loaded from, with what a proxy has in front.
    const options = { url: new URL('.', location.href), token: token ?? undefined };
    this.client = new GaplessClient(options);
    this.#connection = new Connection(options);
  }

  /** @throws {GaplessError} */
  async list(prefix: string, limit: number): Promise<{ streams: ListedStream[]; next: string | null }> {
    const query = { prefix: prefix === '' ? undefined : prefix, limit: String(limit), lag: 'true' };
    return this.#get('/v1/streams', query);
  }

  /** @throws {GaplessError} */
  async readers(name: string): Promise<ReadStream> {
    return this.#get(`${streamPath(name)}/readers`, {});
  }

  /** @param cursor the `next` of before; null at first. @throws {GaplessError} */
  async activity(cursor: string | null): Promise<ActivityAnswer> {
    return this.#get('/v1/activity', { cursor: cursor ?? undefined, limit: '1000' });
  }

  /** @throws {GaplessError} */
  async mcpServers(): Promise<readonly McpServer[]> {
    return (await this.#get<{ servers: readonly McpServer[] }>('/v1/mcp', {})).servers;
  }

  async #get<T>(path: string, query: Readonly<Record<string, string | undefined>>): Promise<T> {
    const response = await this.#connection.request(path, { query });
    if (!response.ok) throw (await errorOf(response)) satisfies GaplessError;
    return (await response.json()) as T;
  }
}
