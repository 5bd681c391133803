/** A session with a server over HTTP: what began it, and what its requests say of it. */

import type { ForwardedHeaders, UpstreamSession } from './upstream.js';

/** What began a session, to begin it again. */
export interface Beginning {
  readonly body: Uint8Array;
  readonly headers: ForwardedHeaders;
}

export class HttpSession {
  /** The server's name for it; null: it has none. */
  #id: string | null = null;
  #revision: string | null = null;
  /** The newest credential of the client that the server took: what goes on may outlive the one it began with. */
  #authorization: string | null = null;
  #beginning: Beginning | null = null;

  get id(): string | null {
    return this.#id;
  }

  /** Null before it has begun. */
  get beginning(): Beginning | null {
    return this.#beginning;
  }

  /** What another process has to know to go on with it; null before it has begun. */
  get state(): UpstreamSession | null {
    if (this.#beginning === null) return null;
    const { body, headers } = this.#beginning;
    const beginning = { body: Buffer.from(body).toString(), headers };
    return { beginning, id: this.#id, revision: this.#revision };
  }

  /** Goes on with what another process has begun. */
  take({ beginning, id, revision }: UpstreamSession): void {
    this.begin({ body: Buffer.from(beginning.body), headers: beginning.headers }, id, revision);
  }

  begin(beginning: Beginning, id: string | null, revision: string | null): void {
    this.#beginning = beginning;
    this.#id = id;
    this.#revision = revision;
  }

  /** The server has taken a request of the client with these. */
  noteTaken({ authorization }: ForwardedHeaders): void {
    this.#authorization = authorization ?? this.#authorization;
  }

  /** Headers of a client, with the newest credential in place of theirs. */
  withNewest(headers: ForwardedHeaders): ForwardedHeaders {
    if (headers.authorization === undefined || this.#authorization === null) return headers;
    return { ...headers, authorization: this.#authorization };
  }

  /** Headers of a request that belongs to the session. */
  withSession(headers: ForwardedHeaders): ForwardedHeaders {
    return {
      ...headers,
      ...(this.#revision === null ? {} : { 'MCP-Protocol-Version': this.#revision }),
      ...(this.#id === null ? {} : { 'Mcp-Session-Id': this.#id }),
    };
  }
}
