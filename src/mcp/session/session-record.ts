/**
 * What is kept of a session so that another process can go on with it. It is written anew as a whole, and seldom: what
 * belongs to one call stands in the call's own stream (stream-notes.ts).
 */

import type { ForwardedHeaders, UpstreamSession } from '../upstream/upstream.js';

export interface SessionRecord {
  readonly id: string;
  /** Of the mount. */
  readonly path: string;
  readonly principal: string;
  readonly revision: string;
  readonly capabilities: readonly string[];
  readonly upstream: UpstreamSession;
  /** Headers with which the server is listened to; null: it is not. */
  readonly listening: ForwardedHeaders | null;
  /** The session's own stream; null: nobody has asked for it. */
  readonly own: OwnRecord | null;
  /** Ids, as JSON, of the server's requests that the client has answered. */
  readonly answered: readonly string[];
  /** The same of calls that it has cancelled lately; absent where no other broker may have them under way. */
  readonly cancelled?: readonly string[];
}

export interface OwnRecord {
  readonly name: string;
  /** Newest seq that is known to have left for the client. */
  readonly deliveredSeq: number;
  /** Whether somebody reads on from there: how far only the client knows. */
  readonly isRead: boolean;
  /** Whether something before it was lost, and nobody was told. */
  readonly hasHole: boolean;
}

/** Where records are kept, by the labels of sessions. */
export interface SessionRecords {
  /** Resolves when it is kept. @throws {RequestError} it cannot be, now */
  begin(label: string, record: SessionRecord): Promise<void>;
  /** A newer one of a session that is kept; committed with what is appended later, or before. */
  put(label: string, record: SessionRecord): void;
  /** Resolves when all that was put is kept. @throws {RequestError} it cannot be, now */
  committed(label: string): Promise<void>;
  /** Resolves when it is kept no more. @throws {RequestError} nobody knows, now */
  remove(label: string): Promise<void>;
}

/** Where brokers share them: each may write, and has a part in a session while it keeps what it has read. */
export interface SharedRecords extends SessionRecords {
  /** The newest, which was written here or elsewhere; null: the session is over, or never was. @throws {RequestError} */
  look(label: string): Promise<SessionRecord | null>;
  /** Whether the session was not ended, as far as is known here. */
  has(label: string): boolean;
  /** Has its time to live begin anew. */
  touch(label: string): void;
  /** This broker has no part in it any more. */
  forget(label: string): void;
}

/** What has become of a record that two brokers have changed: of each what it has changed. */
export function mergeRecords(
  before: SessionRecord,
  mine: SessionRecord,
  theirs: SessionRecord,
): SessionRecord {
  const cancelled = { cancelled: union(theirs.cancelled ?? [], mine.cancelled ?? []) };
  // A server that has begun anew counts its requests from the beginning: what was answered before is of another.
  if (!isSameUpstream(mine, before)) {
    return { ...theirs, ...cancelled, upstream: mine.upstream, answered: mine.answered };
  }
  if (!isSameUpstream(theirs, before)) return { ...theirs, ...cancelled };
  return { ...theirs, ...cancelled, answered: union(theirs.answered, mine.answered) };
}

function union(a: readonly string[], b: readonly string[]): string[] {
  return [...new Set([...a, ...b])];
}

function isSameUpstream(a: SessionRecord, b: SessionRecord): boolean {
  return JSON.stringify(a.upstream) === JSON.stringify(b.upstream);
}
