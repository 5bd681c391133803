/**
 * Where a reader wants to begin, and what that means for the stream as it stands: the one place where a
 * resume is classified, for SSE and for pages (contract 4.1, 4.4, 6).
 */

import { refusal } from '../../broker/refusal.js';
import { type Cursor, parseCursorOrWord } from '../../core/cursor.js';
import { classifyResume, lowestReadable, type ResumeReason, type Start } from '../../core/resume.js';
import type { RequestError } from '../../errors.js';
import { Counter, type Counters } from '../../ring/counters.js';
import type { StreamPositions } from '../../ring/lifecycle.js';

const REFUSED_COUNTER: Readonly<Record<ResumeReason, number>> = {
  ahead_of_head: Counter.unavailableAheadOfHead,
  cursor_unknown: Counter.unavailableCursorUnknown,
  epoch_changed: Counter.unavailableEpochChanged,
  evicted: Counter.unavailableEvicted,
  malformed: Counter.unavailableMalformed,
};

const RESUMED_COUNTER = {
  live: Counter.resumedLive,
  ring: Counter.resumedRing,
  log: Counter.resumedLog,
} as const;

/** A cursor as an error repeats it: hostile ones are long. */
const SHOWN_LENGTH_MAX = 128;

/**
 * Reads the cursor of a request.
 * @param header `Last-Event-ID`; empty as good as none. It wins over the query: an `EventSource` repeats its URL.
 * @throws {RequestError} `malformed`
 */
export function readStart(header: string, query: string | undefined, counters: Counters): Start {
  const text = header !== '' ? header : query;
  if (text === undefined) return null;
  const start = parseCursorOrWord(text);
  if (start === null) throw refused('malformed', text, null, counters);
  return start;
}

/** The words and no cursor at all begin anywhere; only a cursor can be refused. */
export function isCursor(start: Start): start is Cursor {
  return typeof start === 'object' && start !== null;
}

/**
 * The seq after which a reader begins (I2: what follows is the next one, or the reader is refused).
 * @throws {RequestError} `resume_unavailable` with the reason, floor, head and earliest cursor
 */
export function beginAfter(start: Start, at: StreamPositions, counters: Counters): number {
  if (start === null || start === 'latest') {
    counters.add(Counter.joinedLive, 1);
    return at.committed;
  }
  if (start === 'earliest') {
    const lowest = lowestReadable(at);
    counters.add(lowest < at.floor ? Counter.resumedLog : Counter.resumedRing, 1);
    return lowest - 1;
  }
  const classified = classifyResume(start, at);
  if (classified.outcome === 'refused') {
    throw refused(classified.reason, `${start.epoch}.${start.seq}`, at, counters);
  }
  counters.add(RESUMED_COUNTER[classified.outcome], 1);
  return start.seq;
}

/** A refusal, counted. `at` null: there is no such stream. */
export function refused(
  reason: ResumeReason,
  cursor: string,
  at: StreamPositions | null,
  counters: Counters,
): RequestError {
  counters.add(REFUSED_COUNTER[reason], 1);
  counters.add(Counter.resumeRefused, 1);
  const shown = cursor.slice(0, SHOWN_LENGTH_MAX);
  return refusal(
    reason,
    shown,
    at === null ? null : { epoch: at.epoch, floor: lowestReadable(at), head: at.committed },
  );
}
