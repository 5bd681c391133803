import type { JsonRpc, McpAnswer, RawSession } from './raw-session.js';

export interface ResumedCall {
  /** What came, in order, over all connections. */
  readonly messages: readonly JsonRpc[];
  readonly connections: number;
  /** Broken before an id: nobody can resume that, and whether the call is known is not known. */
  readonly neverBegan: boolean;
}

/** More breaks than any call has; a front that makes no headway ends there. */
const CONNECTIONS_MAX = 500;

/** A call by a client that comes back after each break at once, as the protocol has it, until it has a response. */
export async function callAndResume(
  session: RawSession,
  id: number,
  given: Record<string, unknown>,
): Promise<ResumedCall> {
  const messages: JsonRpc[] = [];
  let lastEventId = '';
  for (let connections = 1; connections <= CONNECTIONS_MAX; connections++) {
    const answer = await connect(session, id, given, lastEventId);
    if (answer !== null) {
      await answer.ended;
      if (answer.status !== 200) throw new Error(`${answer.status} ${answer.text}`);
      messages.push(...answer.messages.map(({ message }) => message));
      lastEventId = answer.lastEventId || lastEventId;
      const isOver = messages.some((message) => message.id === id && message.method === undefined);
      if (isOver) return { messages, connections, neverBegan: false };
    }
    if (lastEventId === '') return { messages, connections, neverBegan: true };
  }
  throw new Error(`call ${id} has no end after ${CONNECTIONS_MAX} connections`);
}

/** Null where the connection broke before the answer's head. */
async function connect(
  session: RawSession,
  id: number,
  given: Record<string, unknown>,
  lastEventId: string,
): Promise<McpAnswer | null> {
  try {
    return lastEventId === '' ? await session.call(id, 'count', given) : await session.get(lastEventId);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ECONNRESET') return null;
    throw error;
  }
}
