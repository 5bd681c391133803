/**
 * What happened at all edges lately, in one order (contract 10). A stream in small: numbered from 1 under an epoch of this
 * process, the newest kept, and who reads on after a cursor is told how many it has missed. Single owner: the coordinator.
 */

import type { Cursor } from '../core/cursor.js';
import type { Happening, NumberedHappening } from '../wire/happening.js';

/** What an edge hands over. */
export interface ActivityBatch {
  readonly happenings: readonly Happening[];
  /** What happened beside them. */
  readonly missed: number;
}

const KEPT_MAX = 1000;

export interface ActivityPage {
  readonly epoch: string;
  readonly happenings: readonly NumberedHappening[];
  /** Number of the last that has been given or passed over. */
  readonly last: number;
  /** What happened between the cursor and `last` and is not here; null where that is not known. */
  readonly missed: number | null;
}

export class ActivityFeed {
  readonly #epoch: string;
  #kept: NumberedHappening[] = [];
  #lastNumber = 0;
  #missed = 0;

  constructor(epoch: string) {
    this.#epoch = epoch;
  }

  /** What happened that was too much for the edges to hand over. */
  get missed(): number {
    return this.#missed;
  }

  add({ happenings, missed }: ActivityBatch): void {
    for (const happening of happenings) this.#kept.push({ number: ++this.#lastNumber, ...happening });
    // They have numbers, so that whoever reads on sees that there was more.
    this.#lastNumber += missed;
    this.#missed += missed;
    if (this.#kept.length > 2 * KEPT_MAX) this.#kept = this.#kept.slice(-KEPT_MAX);
  }

  /** What came after a cursor, the oldest first; null begins with the oldest that is kept. */
  after(cursor: Cursor | null, limit: number): ActivityPage {
    const isKnown = cursor !== null && cursor.epoch === this.#epoch && cursor.seq <= this.#lastNumber;
    const from = isKnown ? cursor.seq : 0;
    const found = this.#kept.slice(-KEPT_MAX).filter(({ number }) => number > from);
    const happenings = found.slice(0, limit);
    const isAll = happenings.length === found.length;
    const last = isAll ? this.#lastNumber : (happenings.at(-1) as NumberedHappening).number;
    // Without a cursor nothing was missed; after one from before a restart nobody knows how much was.
    const missed = isKnown ? last - from - happenings.length : cursor === null ? 0 : null;
    return { epoch: this.#epoch, happenings, last, missed };
  }
}
