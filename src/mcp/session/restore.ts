/**
 * Takes up the sessions that another process has left, from what is kept of them: their records, and the streams of
 * calls that were under way. Each of these goes on at the server where that can be, and is answered with an error else.
 */

import type { LeftStream, McpStreams } from '../stream/mcp-streams.js';
import { reachedAt, readHistory, textOf } from './call-history.js';
import type { Session } from './session.js';
import type { OwnRecord, SessionRecord } from './session-record.js';

/** What there is of the process before. */
export interface Archive {
  readonly streams: Pick<McpStreams, 'read' | 'remove'>;
  /** Streams with the records of sessions. */
  readonly records: readonly LeftStream[];
  /** All others. */
  readonly others: readonly LeftStream[];
}

export interface Restored {
  readonly sessions: number;
  readonly calls: number;
}

export async function restoreSessions(
  archive: Archive,
  restore: (record: SessionRecord) => Session | null,
): Promise<Restored> {
  const { streams, records, others } = archive;
  const open = new Map(others.filter(({ isClosed }) => !isClosed).map((stream) => [stream.ref.name, stream]));
  const sessions = new Map<string, Session>();
  for (const stream of records) {
    const session = await restoreSession(streams, stream, open, restore);
    if (session === null) streams.remove(stream.ref);
    else sessions.set(session.label, session);
  }
  let calls = 0;
  for (const stream of open.values()) {
    const history = await readHistory(streams, stream);
    const session = sessions.get(history?.note?.session ?? '');
    // Spares, and calls of sessions that have ended. A client that comes back to one is told so.
    if (history?.note === null || history === null || session === undefined) {
      streams.remove(stream.ref);
      continue;
    }
    session.restoreCall(stream.ref, history.note, history, history.reached);
    calls++;
  }
  return { sessions: sessions.size, calls };
}

/** @param open the session's own stream is taken out. */
async function restoreSession(
  streams: Archive['streams'],
  { ref, head }: LeftStream,
  open: Map<string, LeftStream>,
  restore: (record: SessionRecord) => Session | null,
): Promise<Session | null> {
  // Without a record, the process ended before anybody had heard of the session.
  const [written] = head === 0 ? [] : await streams.read(ref, head - 1);
  if (written === undefined) return null;
  const record = JSON.parse(textOf(written)) as SessionRecord;
  const session = restore(record);
  if (session === null) return null;
  const reached = record.own === null ? null : await restoreOwn(streams, session, record.own, open);
  if (record.listening !== null) session.own.listen(record.listening, reached);
  return session;
}

/** @returns where the server's own stream can be taken up; null: nobody knows. */
async function restoreOwn(
  streams: Archive['streams'],
  session: Session,
  record: OwnRecord,
  open: Map<string, LeftStream>,
): Promise<string | null> {
  const own = open.get(record.name) ?? null;
  session.own.restore(own, record);
  if (own === null) return null;
  open.delete(record.name);
  const [newest] = own.head === 0 ? [] : await streams.read(own.ref, own.head - 1);
  return newest === undefined ? null : reachedAt(newest);
}
