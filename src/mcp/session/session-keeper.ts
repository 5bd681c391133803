/** Has what another process has to know of a session written down whenever it changes. */

import type { UpstreamSession } from '../upstream/upstream.js';
import type { Session } from './session.js';
import type { SessionRecord, SessionRecords } from './session-record.js';

export interface SessionKeeperOptions {
  readonly session: Session;
  readonly records: SessionRecords;
  /** Of the mount. */
  readonly path: string;
}

export class SessionKeeper {
  readonly #options: SessionKeeperOptions;
  /** Whether somebody reads the session's own stream: how far it was given only the client knows then. */
  #isOwnRead = false;
  #hasBegun = false;

  constructor(options: SessionKeeperOptions) {
    this.#options = options;
  }

  /** Whether it is kept. */
  get hasBegun(): boolean {
    return this.#hasBegun;
  }

  /** Another process has kept it. */
  restored(): void {
    this.#hasBegun = true;
  }

  /** The server has agreed to it. Resolves when it is kept. @throws {RequestError} it cannot be, now */
  async begin(): Promise<void> {
    const { session, records } = this.#options;
    const upstream = session.upstream.session;
    if (upstream === null) return;
    await records.begin(session.label, this.#describe(upstream));
    this.#hasBegun = true;
    if (session.isEnded) await this.forget();
  }

  /** It has changed. */
  keep(): void {
    const { session, records } = this.#options;
    const upstream = session.upstream.session;
    if (upstream !== null && !session.isEnded) records.put(session.label, this.#describe(upstream));
  }

  /** Somebody is about to read the session's own stream. Resolves when that is kept. @throws {RequestError} */
  async ownIsRead(): Promise<void> {
    const { session, records } = this.#options;
    const isKnown = this.#isOwnRead;
    this.#isOwnRead = true;
    if (!isKnown) this.keep();
    await records.committed(session.label);
  }

  /** Its reader has left: how far it came is known again. */
  ownIsLeft(): void {
    this.#isOwnRead = false;
    this.keep();
  }

  /** The session is over. Resolves when it is kept no more. @throws {RequestError} nobody knows, now */
  forget(): Promise<void> {
    const { session, records } = this.#options;
    return records.remove(session.label);
  }

  #describe(upstream: UpstreamSession): SessionRecord {
    const { session, path } = this.#options;
    const { id, principal, revision, capabilities, serverRequests } = session;
    const { listening, record } = session.own;
    const cancelled = session.cancelled === undefined ? {} : { cancelled: session.cancelled };
    const own = record === null ? null : { ...record, isRead: this.#isOwnRead };
    const { answered } = serverRequests;
    return { id, path, principal, revision, capabilities, upstream, listening, own, answered, ...cancelled };
  }
}
