/**
 * Named subscribers: what the server knows that the receiver has, and how that moves (contract 4.8, 7). Within an epoch
 * it moves forward only (I9), and never beyond what may be seen.
 */

import type { Cursor } from './cursor.js';
import { classifyResume, lowestReadable, type Start, type StreamPositions } from './resume.js';

export type Acknowledged =
  /** What is known from now on: the given cursor, or one that was further. */
  | { readonly outcome: 'known'; readonly acked: Cursor }
  | { readonly outcome: 'ahead' }
  | { readonly outcome: 'epoch_changed' };

/** The receiver says that it has everything up to a cursor. */
export function acknowledge(cursor: Cursor, acked: Cursor, at: StreamPositions): Acknowledged {
  if (cursor.epoch !== at.epoch) return { outcome: 'epoch_changed' };
  if (cursor.seq > at.committed) return { outcome: 'ahead' };
  return { outcome: 'known', acked: furthest(cursor, acked) };
}

/**
 * A subscriber comes under a name.
 *
 * @param acked what is known of it; null: it comes for the first time.
 * @returns where it begins, which may yet be refused, and what is known of it from now on; null: it is refused, and was
 *   not known before.
 */
export function joinNamed(
  start: Start,
  acked: Cursor | null,
  at: StreamPositions,
): { start: Start; acked: Cursor | null } {
  if (start === null && acked !== null) return { start: acked, acked };
  const position = firstPosition(start, at);
  if (position === null) return { start, acked };
  // What begins now begins at what is written down: an event in between would be neither given nor missed.
  const begin = start === 'earliest' ? start : position;
  if (typeof start === 'string' && acked?.epoch === at.epoch) return { start: begin, acked };
  return { start: begin, acked: acked === null ? position : furthest(position, acked) };
}

/** What a subscriber has that begins there; null where it is refused. */
function firstPosition(start: Start, at: StreamPositions): Cursor | null {
  const { epoch, committed } = at;
  if (start === null || start === 'latest') return { epoch, seq: committed };
  if (start === 'earliest') return { epoch, seq: lowestReadable(at) - 1 };
  return classifyResume(start, at).outcome === 'refused' ? null : start;
}

/**
 * The lowest seq that a named subscriber holds (contract 3.6): one that it has not acknowledged. Whose next event is gone
 * holds nothing, for it has to be refused whatever is kept; nor does who has events of another epoch.
 *
 * @returns Infinity: nothing is held.
 */
export function lowestHeld(
  acked: Iterable<Cursor>,
  at: { readonly epoch: string; readonly floor: number },
): number {
  let lowest = Number.POSITIVE_INFINITY;
  for (const cursor of acked) if (holds(cursor, at)) lowest = Math.min(lowest, cursor.seq + 1);
  return lowest;
}

/** Whether who has acknowledged so far can be given what comes next, and holds it. */
export function holds(
  { epoch, seq }: Cursor,
  at: { readonly epoch: string; readonly floor: number },
): boolean {
  return epoch === at.epoch && seq + 1 >= at.floor;
}

/** What is known of another epoch gives way. */
function furthest(cursor: Cursor, acked: Cursor): Cursor {
  return acked.epoch === cursor.epoch && acked.seq > cursor.seq ? acked : cursor;
}
