/**
 * What stands in a stream of MCP beside the text of its messages, where sessions are kept: enough to go on with a call in
 * another process. It is the type of an event, or an event of its own, so that it is committed with the messages around
 * it and in their order (I3); readers are shown neither.
 */

import { isEventType } from '../../core/event-type.js';
import type { ForwardedHeaders } from '../upstream/upstream.js';

/** What the types of events begin with that are no message. */
export const NOTE_PREFIX = '~';

export const NOTE_TYPES = {
  /** The first event of a call's stream: a `CallNote`. */
  call: '~call',
  /** Where the server's own stream can be taken up; what comes before it is in the stream. */
  reached: '~reached',
  /** A call that the client has cancelled, as JSON. */
  cancelled: '~cancelled',
  /** The broker that appends from here on, where several share a log. */
  taken: '~taken',
} as const;

/** Whose call it is. */
export interface CallNote {
  /** The session's label. */
  readonly session: string;
  /** Ids of the calls that the stream answers, as JSON. */
  readonly calls: readonly string[];
  /** Headers of the request, for the server. */
  readonly headers: ForwardedHeaders;
}

/** Before the server's id of a message in the type of its event. */
export const MESSAGE_PREFIX = 'id:';

/** The type of a message's event. @param reached the server's id of it, or of the newest before it; null: none. */
export function messageType(reached: string | null): string | null {
  if (reached === null) return null;
  const type = MESSAGE_PREFIX + reached;
  // A longer one is not kept: a call that stands there cannot be taken up, and is told so.
  return isEventType(type) ? type : null;
}

/** The reverse: where the server's stream can be taken up after this message; null: nobody knows. */
export function reachedOf(type: string | null): string | null {
  return type?.startsWith(MESSAGE_PREFIX) === true ? type.slice(MESSAGE_PREFIX.length) : null;
}

export function isNote(type: string | null): boolean {
  return type?.startsWith(NOTE_PREFIX) === true;
}
