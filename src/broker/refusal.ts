/**
 * What is said when a resume is impossible: the same JSON as a 410 body and as the data of the in-band event
 * (contract 4.4 to 4.6).
 */

import { formatCursor } from '../core/cursor.js';
import type { ResumeReason } from '../core/resume.js';
import { eventFrame } from '../core/sse-frame.js';
import { RequestError } from '../errors.js';

/** Where the stream stood when it refused. */
export interface RefusalPositions {
  readonly epoch: string;
  /** Lowest seq that can still be read. */
  readonly floor: number;
  /** Highest seq that may be seen. */
  readonly head: number;
}

/**
 * A refused resume as an error: 410, or 400 for a cursor that cannot be read.
 * @param at null: there is no such stream, or it was not looked for.
 */
export function refusal(reason: ResumeReason, cursor: string, at: RefusalPositions | null): RequestError {
  const code = reason === 'malformed' ? 'malformed' : 'resume_unavailable';
  if (at === null) {
    const nowhere = { epoch: null, floor: null, head: null, earliest: null };
    return new RequestError(code, undefined, { reason, cursor, ...nowhere });
  }
  const { epoch, floor, head } = at;
  return new RequestError(
    code,
    undefined,
    { reason, cursor, epoch, floor, head, earliest: formatCursor(epoch, floor - 1) },
    { 'Gapless-Epoch': epoch, 'Gapless-Floor': String(floor), 'Gapless-Head': String(head) },
  );
}

/** The in-band refusal: its id is the head, so that what follows comes without a hole (contract 4.5). */
export function refusalFrame(error: RequestError, at: { epoch: string; head: number }): string {
  return eventFrame('resume_unavailable', JSON.stringify(error.problem()), formatCursor(at.epoch, at.head));
}

/** The in-band refusal of a reader that eviction overtook (contract 4.6). */
export function overtakenFrame(
  epoch: string,
  cursor: number,
  at: { lowestSeq: number; committedSeq: number },
): string {
  const positions = { epoch, floor: at.lowestSeq, head: at.committedSeq };
  return refusalFrame(refusal('evicted', formatCursor(epoch, cursor), positions), positions);
}
