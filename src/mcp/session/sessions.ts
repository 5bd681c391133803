/** The sessions of all clients of the front: begun, found by those who may use them, and ended. */

import { RequestError } from '../../errors.js';
import { refusal } from '../answers.js';
import type { EventIds } from '../event-id.js';
import { FrontCount, type FrontCounts } from '../front-counts.js';
import { BAD_REQUEST, LIMIT_REACHED, NO_SESSION, type RpcError } from '../json-rpc.js';
import type { ClientRequest, WholeAnswer } from '../messages.js';
import { ASSUMED_REVISION, isResumableRevision } from '../revision.js';
import type { Backlog } from '../stream/backlog.js';
import type { McpStreams } from '../stream/mcp-streams.js';
import type { Upstream, UpstreamSession } from '../upstream/upstream.js';
import { Session } from './session.js';
import { labelOf } from './session-label.js';
import type { Transport } from './session-options.js';
import type { SessionRecord, SessionRecords, SharedRecords } from './session-record.js';

export interface SessionsOptions {
  /** A session's server, for each mount. @param before the session as another process left it; null: a new one. */
  readonly connect: (mount: number, session: () => Session, before: UpstreamSession | null) => Upstream;
  /** Of each mount. */
  readonly paths: readonly string[];
  /** Where sessions of Streamable HTTP are kept; null: they end with the process. */
  readonly records: SessionRecords | null;
  /** The same, where several brokers share them; null: this broker is the only one. */
  readonly sharedRecords: SharedRecords | null;
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

export class Sessions implements Iterable<Session> {
  readonly #options: SessionsOptions;
  readonly #byId = new Map<string, Session>();

  constructor(options: SessionsOptions) {
    this.#options = options;
  }

  /** @param call that asks for it, as JSON. @returns a refusal where there are as many as there may be. */
  begin({ mount, principal }: ClientRequest, transport: Transport, call = 'null'): Session | WholeAnswer {
    const { counts, sessionsMax, newSessionId } = this.#options;
    if (this.#byId.size >= sessionsMax) {
      counts.add(FrontCount.refusedSessions, 1);
      return refusal(503, LIMIT_REACHED, 'too many sessions', call);
    }
    return this.#add({ id: newSessionId(), mount, principal, transport }, null);
  }

  /** Takes up one that another process has left; null: its server is not behind this front any more. */
  restore(record: SessionRecord): Session | null {
    const { id, principal, path, upstream } = record;
    const mount = this.#options.paths.indexOf(path);
    if (mount < 0) return null;
    const session = this.#add({ id, mount, principal, transport: 'streamable' }, upstream);
    session.restore(record);
    session.keeper?.restored();
    this.#options.counts.add(FrontCount.restored, 1);
    return session;
  }

  /**
   * As `find`, of a session that was begun at another broker, or ended there, as well.
   * @throws {RequestError} nobody can say now
   */
  async meet(request: ClientRequest): Promise<Session | WholeAnswer> {
    if (this.#options.sharedRecords === null || request.session === '')
      return this.find(request, 'streamable');
    await this.#meet(this.#options.sharedRecords, request.session);
    const met = this.#byId.get(request.session);
    if (met === undefined && this.#isFull) return refusal(503, LIMIT_REACHED, 'too many sessions');
    return this.find(request, 'streamable');
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
    if (session.keeper !== null) this.#options.sharedRecords?.touch(session.label);
  }

  /** Ends those that nobody uses, and keeps what the others need. */
  sweep(): void {
    const { now, sessionTtlMs, sharedRecords } = this.#options;
    const nowMs = now();
    for (const session of this.#byId.values()) {
      if (session.isInUse) this.use(session);
      if (sharedRecords !== null && session.keeper !== null) {
        // It may be in use elsewhere: the time to live is that of its record.
        if (sharedRecords.has(session.label) || !session.keeper.hasBegun) session.keep();
        else this.#drop(session);
        if (session.callsUnderWay > 0) this.#refresh(sharedRecords, session);
      } else if (nowMs - session.usedAtMs < sessionTtlMs[session.transport]) session.keep();
      else this.end(session);
    }
  }

  /** What is kept of it goes as well; where it cannot now, it goes when the next process finds it unused. */
  end(session: Session): void {
    this.endForGood(session).catch((error: unknown) => {
      if (!(error instanceof RequestError)) throw error;
    });
  }

  /** Resolves when the server knows, and when it is kept no more. @throws {RequestError} nobody knows whether it is */
  async endForGood(session: Session): Promise<void> {
    this.#byId.delete(session.id);
    this.#options.counts.set(FrontCount.sessions, this.#byId.size);
    await Promise.all([session.end(), session.keeper?.forget()]);
  }

  /** The process goes down, and with it the sessions that are not kept. Resolves when the servers know. */
  async close(): Promise<void> {
    const sessions = [...this.#byId.values()];
    await Promise.all(
      sessions.map((session) => (session.keeper === null ? session.end() : session.suspend())),
    );
  }

  [Symbol.iterator](): Iterator<Session> {
    return this.#byId.values();
  }

  async #meet(records: SharedRecords, id: string): Promise<void> {
    const label = labelOf(id);
    const record = await records.look(label);
    const known = this.#byId.get(id);
    if (record === null) {
      // It has not begun yet, or it is over.
      if (known?.keeper?.hasBegun === true) this.#drop(known);
    } else if (record.id !== id) return;
    else if (known !== undefined) known.shared?.refresh(known, record);
    else if (this.#isFull || this.restore(record) === null) records.forget(label);
  }

  /** Calls that are under way here may have been cancelled elsewhere. */
  #refresh(records: SharedRecords, session: Session): void {
    records.look(session.label).then(
      (record) => record !== null && session.shared?.refresh(session, record),
      (error: unknown) => {
        if (!(error instanceof RequestError)) throw error;
      },
    );
  }

  get #isFull(): boolean {
    return this.#byId.size >= this.#options.sessionsMax;
  }

  /** It was ended elsewhere. */
  #drop(session: Session): void {
    this.#byId.delete(session.id);
    this.#options.counts.set(FrontCount.sessions, this.#byId.size);
    this.#options.sharedRecords?.forget(session.label);
    void session.end();
  }

  #add(
    whose: { id: string; mount: number; principal: string; transport: Transport },
    before: UpstreamSession | null,
  ): Session {
    const { connect, counts, paths, now } = this.#options;
    const upstream = connect(whose.mount, () => session, before);
    const path = paths[whose.mount] as string;
    const records = whose.transport === 'streamable' ? this.#options.records : null;
    const session: Session = new Session({ ...this.#options, ...whose, path, upstream, records });
    session.usedAtMs = now();
    this.#byId.set(session.id, session);
    counts.set(FrontCount.sessions, this.#byId.size);
    return session;
  }
}
