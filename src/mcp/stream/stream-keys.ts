/** Names of streams within a session, as their ids carry them (see event-id.ts). */

/** The session's own stream. */
export const OWN_STREAM = 'own';
const SSE_PREFIX = 'sse:';

/** The own stream of a session of HTTP+SSE, whose clients show an id and nothing else. */
export function sseKey(session: string): string {
  return SSE_PREFIX + session;
}

/** The session that a key names; null: it is none of HTTP+SSE. */
export function sessionOfKey(key: string): string | null {
  return key.startsWith(SSE_PREFIX) ? key.slice(SSE_PREFIX.length) : null;
}
