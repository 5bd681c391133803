/**
 * Log lines are written while the loop waits, so of those that strangers cause there are only so many in a second.
 */

const LINES_MAX = 50;
const WINDOW_MS = 1000;

export class LineLimit {
  readonly #now: () => number;
  readonly #left: (count: number) => void;
  #windowEndsMs = 0;
  #lines = 0;
  #unwritten = 0;

  /** @param left told how many lines were left out, with the first one after them. */
  constructor(now: () => number, left: (count: number) => void) {
    this.#now = now;
    this.#left = left;
  }

  /** Whether another line may be written now; asked once for each. */
  get hasRoom(): boolean {
    const nowMs = this.#now();
    if (nowMs >= this.#windowEndsMs) {
      if (this.#unwritten > 0) this.#left(this.#unwritten);
      this.#unwritten = 0;
      this.#lines = 0;
      this.#windowEndsMs = nowMs + WINDOW_MS;
    }
    if (++this.#lines <= LINES_MAX) return true;
    this.#unwritten++;
    return false;
  }
}
