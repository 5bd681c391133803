/**
 * What happened to those who came to this edge lately: attempts to resume, with what they met, and whatever was refused
 * (contract 10). For people who look on. It waits here until it is handed to the coordinator, some times a second.
 *
 * Resumes come in storms, so only so many are kept between two hand-overs, and the others are counted.
 */

import type { Principal } from '../../auth/principal.js';
import type { ActivityBatch } from '../../broker/activity-feed.js';
import type { OvertakenAt } from '../../broker/refusal.js';
import type { Subscription } from '../../broker/subscription.js';
import { type Cursor, formatCursor } from '../../core/cursor.js';
import { lowestReadable } from '../../core/resume.js';
import type { RequestError } from '../../errors.js';
import type { StreamPositions } from '../../ring/lifecycle.js';
import type { Happening } from '../../wire/happening.js';

const PENDING_MAX = 100;
/** A name that nobody has checked yet may be as long as a request line. */
const STREAM_LENGTH_MAX = 200;
/** So may the subject of a token be. */
export const PRINCIPAL_LENGTH_MAX = 200;

export class Activity {
  readonly #now: () => number;
  #pending: Happening[] = [];
  #missed = 0;

  constructor(now: () => number) {
    this.#now = now;
  }

  /** Somebody came back with a cursor, and is given what follows. */
  resumed({ stream, principal }: About, { epoch, seq }: Cursor, at: StreamPositions): void {
    if (!this.#hasRoom()) return;
    const outcome = seq === at.committed ? 'live' : seq + 1 >= at.floor ? 'ring' : 'log';
    const positions = { floor: lowestReadable(at), head: at.committed };
    this.#add({ outcome, stream, principal: principal.id, cursor: formatCursor(epoch, seq), ...positions });
  }

  /** @param request the number under which the refusal is logged. */
  refused({ stream, principal }: About, { code, extra }: RequestError, request: string): void {
    if (!this.#hasRoom()) return;
    const { reason, cursor, epoch, floor, head, earliest } = extra as Partial<Happening>;
    const known = { reason, cursor, epoch, floor, head, earliest };
    const said = Object.fromEntries(Object.entries(known).filter(([, value]) => value !== undefined));
    this.#add({
      outcome: 'refused',
      stream: stream.slice(0, STREAM_LENGTH_MAX),
      principal: principal.id,
      code,
      request,
      ...said,
    });
  }

  /** Eviction has passed a connected reader (contract 4.6). */
  overtaken({ stream, cursor }: Subscription, at: OvertakenAt, principal: Principal | null): void {
    if (!this.#hasRoom()) return;
    this.#add({
      outcome: 'overtaken',
      stream: stream.name,
      principal: principal?.id ?? '',
      code: 'resume_unavailable',
      reason: 'evicted',
      cursor: formatCursor(stream.epoch, cursor),
      floor: at.lowestSeq,
      head: at.committedSeq,
    });
  }

  /** What came since it was last called; null when nothing did. */
  take(): ActivityBatch | null {
    if (this.#pending.length === 0) return null;
    const batch = { happenings: this.#pending, missed: this.#missed };
    this.#pending = [];
    this.#missed = 0;
    return batch;
  }

  #hasRoom(): boolean {
    if (this.#pending.length < PENDING_MAX) return true;
    this.#missed++;
    return false;
  }

  #add(happening: Omit<Happening, 'at'>): void {
    const principal = happening.principal.slice(0, PRINCIPAL_LENGTH_MAX);
    this.#pending.push({ at: Math.round(this.#now()), ...happening, principal });
  }
}

/** Who did what with which stream. */
interface About {
  readonly stream: string;
  readonly principal: Principal;
}
