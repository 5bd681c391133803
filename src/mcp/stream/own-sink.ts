/** What belongs to no call, on its way to the session's own stream. */

import type { Session } from '../session/session.js';
import type { MessageSink } from '../upstream/upstream.js';
import { messageType, NOTE_TYPES } from './stream-notes.js';

export function ownSink(session: Session): MessageSink {
  return {
    get isClosed() {
      return session.isOwnClosed;
    },
    push(message, reached = null) {
      // An answer to nothing that was asked.
      if (message.kind === 'response') return;
      return session.tell(message.text, null, session.keeper === null ? null : messageType(reached));
    },
    reached(id) {
      if (session.keeper !== null) void session.tell(id, null, NOTE_TYPES.reached);
    },
    fail: () => undefined,
  };
}
