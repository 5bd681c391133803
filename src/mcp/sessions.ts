/** The sessions of all clients of the front: begun, found by those who may use them, and ended. */

import { refusal } from './answers.js';
import type { Backlog } from './backlog.js';
import type { EventIds } from './event-id.js';
import { FrontCount, type FrontCounts } from './front-counts.js';
import { BAD_REQUEST, LIMIT_REACHED, NO_SESSION, type RpcError } from './json-rpc.js';
import type { McpStreams } from './mcp-streams.js';
import type { ClientRequest, WholeAnswer } from './messages.js';
import { ASSUMED_REVISION, isResumableRevision } from './revision.js';
import { Session, type Transport } from './session.js';
import type { Upstream } from './upstream.js';

export interface SessionsOptions {
  /** A new session's server, for each mount. */
  readonly connect: (mount: number, session: () => Session) => Upstream;
  readonly streams: McpStreams;
  readonly backlog: Backlog;
  readonly ids: EventIds;
  readonly counts: FrontCounts;
  readonly sessionsMax: number;
  readonly callsMax: number;
  /** How long a session lives that nobody uses, by its transport, milliseconds. */
  readonly sessionTtlMs: Readonly<Record<Transport, number>>;
  readonly newSessionId: () => string;
  /** Told of calls that the front has to answer itself. */
  readonly failed: (session: Session, error: RpcError) => void;
  readonly now: () => number;
}

export class Sessions {
  readonly #options: SessionsOptions;
  readonly #byId = new Map<string, Session>();

  constructor(options: SessionsOptions) {
    this.#options = options;
  }

  /** @param call that asks for it, as JSON. @returns a refusal where there are as many as there may be. */
  begin({ mount, principal }: ClientRequest, transport: Transport, call = 'null'): Session | WholeAnswer {
    const { streams, backlog, ids, callsMax, counts, failed, connect, newSessionId } = this.#options;
    if (this.#byId.size >= this.#options.sessionsMax) {
      counts.add(FrontCount.refusedSessions, 1);
      return refusal(503, LIMIT_REACHED, 'too many sessions', call);
    }
    const upstream = connect(mount, () => session);
    const id = newSessionId();
    const session: Session = new Session({
      id,
      mount,
      principal,
      transport,
      upstream,
      streams,
      backlog,
      ids,
      callsMax,
      counts,
      failed,
    });
    session.usedAtMs = this.#options.now();
    this.#byId.set(id, session);
    counts.set(FrontCount.sessions, this.#byId.size);
    return session;
  }

  /** The session that a request names, if it may. That of somebody else is as good as none. */
  find(request: ClientRequest, transport: Transport): Session | WholeAnswer {
    const { session: id, principal, mount, revision } = request;
    if (id === '') return refusal(400, BAD_REQUEST, 'Mcp-Session-Id is missing');
    const session = this.#byId.get(id);
    const isTheirs = session?.principal === principal && session.mount === mount;
    if (session === undefined || !isTheirs || session.transport !== transport) {
      return refusal(404, NO_SESSION, 'Session not found');
    }
    if (!isResumableRevision(revision === '' ? ASSUMED_REVISION : revision)) {
      return refusal(400, BAD_REQUEST, `unsupported MCP-Protocol-Version: ${revision.slice(0, 32)}`);
    }
    this.use(session);
    return session;
  }

  /** It is in use: its time to live begins anew. */
  use(session: Session): void {
    session.usedAtMs = this.#options.now();
  }

  /** Ends those that nobody uses, and keeps what the others need. */
  sweep(): void {
    const { now, sessionTtlMs } = this.#options;
    const nowMs = now();
    for (const session of this.#byId.values()) {
      if (session.isInUse) session.usedAtMs = nowMs;
      if (nowMs - session.usedAtMs < sessionTtlMs[session.transport]) session.keep();
      else void this.end(session);
    }
  }

  /** Resolves when the server knows. */
  end(session: Session): Promise<void> {
    this.#byId.delete(session.id);
    this.#options.counts.set(FrontCount.sessions, this.#byId.size);
    return session.end();
  }

  async endAll(): Promise<void> {
    await Promise.all([...this.#byId.values()].map((session) => this.end(session)));
  }
}
