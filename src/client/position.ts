import { type Cursor, formatCursor, parseCursor } from '../core/cursor.js';

/**
 * Where a subscription is, and whether what comes next is what has to: the client's own check that nothing is missing
 * and nothing comes twice, whatever stands between it and the server.
 */
export class Position {
  /** With a filter, seqs leave out what it does, and only have to grow (contract 4.9). */
  readonly #isFiltered: boolean;
  #cursor: Cursor | null;

  /** @param cursor null: not known yet. The first id decides. */
  constructor(cursor: string | null, { isFiltered }: { isFiltered: boolean }) {
    this.#cursor = cursor === null ? null : parseCursor(cursor);
    this.#isFiltered = isFiltered;
  }

  get cursor(): string | null {
    return this.#cursor === null ? null : formatCursor(this.#cursor.epoch, this.#cursor.seq);
  }

  /**
   * Moves to an event.
   * @returns whether it is the next one. If not, nothing has moved.
   */
  moveToEvent(id: string | null): boolean {
    return this.#move(id, (seq, at) => (this.#isFiltered ? seq > at : seq === at + 1));
  }

  /**
   * Moves to a position without an event: the priming frame, and what a filter passed over.
   * @returns whether no event can have been left out. If not, nothing has moved.
   */
  moveTo(id: string): boolean {
    return this.#move(id, (seq, at) => (this.#isFiltered ? seq >= at : seq === at));
  }

  /** Somebody who was told what is missing goes on from here. */
  reset(cursor: string): void {
    this.#cursor = parseCursor(cursor);
  }

  /** Whether a stream whose last event is `id` has been given whole. */
  isEnd(id: unknown): boolean {
    return this.#isFiltered || this.#cursor === null || id === this.cursor;
  }

  #move(id: string | null, follows: (seq: number, at: number) => boolean): boolean {
    const next = id === null ? null : parseCursor(id);
    if (next === null) return false;
    const at = this.#cursor;
    if (at !== null && (next.epoch !== at.epoch || !follows(next.seq, at.seq))) return false;
    this.#cursor = next;
    return true;
  }
}
