/**
 * What is said when a resume is impossible: the same JSON as a 410 body and as the data of the in-band event
 * (contract 4.4 to 4.6).
 */

import { formatCursor } from '../core/cursor.js';
import type { ResumeReason } from '../core/resume.js';
import { RequestError } from '../errors.js';
import type { Ending } from './ending.js';

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

/** Where a stream stands that has overtaken a reader: the lowest seq and the highest that it could be given. */
export interface OvertakenAt {
  readonly lowestSeq: number;
  readonly committedSeq: number;
}

/** What a resume would be told that came at this moment (contract 4.6). */
export function overtakenRefusal(epoch: string, cursor: number, at: OvertakenAt): RequestError {
  const positions = { epoch, floor: at.lowestSeq, head: at.committedSeq };
  return refusal('evicted', formatCursor(epoch, cursor), positions);
}

/** How a reader ends that eviction overtook, where it is told (contract 4.6). */
export function overtakenEnding(epoch: string, cursor: number, at: OvertakenAt): Ending {
  return {
    kind: 'unavailable',
    refusal: overtakenRefusal(epoch, cursor, at),
    head: formatCursor(epoch, at.committedSeq),
  };
}
