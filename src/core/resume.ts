import { assert } from '../assert.js';
import { type Cursor, formatCursor } from './cursor.js';

/** One consistent view of a stream's positions (I8: all four are read together). */
export interface StreamPositions {
  readonly epoch: string;
  /** Oldest seq in the ring; `committed + 1` or less. */
  readonly floor: number;
  /** Oldest seq in the durable log, or null where there is no log. */
  readonly logFloor: number | null;
  /** Newest seq that may be seen. */
  readonly committed: number;
}

/** Where a reader wants to begin: a cursor, one of the words, or null for one that has none (contract 4.1). */
export type Start = Cursor | 'earliest' | 'latest' | null;

/** Why a resume is refused, as the `reason` of contract 4.4 has it. */
export type ResumeReason = 'ahead_of_head' | 'cursor_unknown' | 'epoch_changed' | 'evicted' | 'malformed';

export type ResumeOutcome =
  | { readonly outcome: 'live' }
  | { readonly outcome: 'ring' }
  | { readonly outcome: 'log' }
  | { readonly outcome: 'refused'; readonly reason: Exclude<ResumeReason, 'cursor_unknown' | 'malformed'> };

const LIVE: ResumeOutcome = { outcome: 'live' };
const RING: ResumeOutcome = { outcome: 'ring' };
const LOG: ResumeOutcome = { outcome: 'log' };
const EPOCH_CHANGED: ResumeOutcome = { outcome: 'refused', reason: 'epoch_changed' };
const AHEAD_OF_HEAD: ResumeOutcome = { outcome: 'refused', reason: 'ahead_of_head' };
const EVICTED: ResumeOutcome = { outcome: 'refused', reason: 'evicted' };

/**
 * Decides from where the events after a cursor can be had, or that they cannot (contract 4.4).
 *
 * The next event is `cursor.seq + 1`. It is either the one the outcome starts with or the resume is refused; no
 * outcome starts further on (I2).
 */
export function classifyResume(cursor: Cursor, at: StreamPositions): ResumeOutcome {
  assertPositions(at);
  if (cursor.epoch !== at.epoch) return EPOCH_CHANGED;
  if (cursor.seq > at.committed) return AHEAD_OF_HEAD;
  if (cursor.seq === at.committed) return LIVE;

  const next = cursor.seq + 1;
  if (next >= at.floor) return RING;
  if (at.logFloor !== null && next >= at.logFloor) return LOG;
  return EVICTED;
}

/** Lowest seq that can still be read, wherever it is kept: the floor that clients are shown (contract 4.2). */
export function lowestReadable(at: StreamPositions): number {
  return at.logFloor === null ? at.floor : Math.min(at.floor, at.logFloor);
}

/** The earliest cursor that {@link classifyResume} does not refuse: just before the lowest readable event. */
export function earliestCursor(at: StreamPositions): string {
  assertPositions(at);
  return formatCursor(at.epoch, lowestReadable(at) - 1);
}

function assertPositions(at: StreamPositions): void {
  assert(at.floor >= 1 && at.floor <= at.committed + 1, 'I5: the floor stays within the committed events');
  assert(
    at.logFloor === null || (at.logFloor >= 1 && at.logFloor <= at.committed + 1),
    'I5: the log floor stays within the committed events',
  );
}
