/**
 * Brokers that write to one stream take turns. Of two appends that name the same entry the first in the log counts, so
 * who is nearer to the log would be first again and again, and publishers at the others would wait until they are given
 * up. So a broker lets those be first that have lost to it.
 */

import type { LogEntry } from '../../storage/jetstream/log-entry.js';
import type { WriteNames } from './write-names.js';

/**
 * How long the others are waited for at most. Long enough for a broker in another place to append; and one that lost may
 * have nothing to append any more.
 */
const TURN_MS_MAX = 100;

export class Rivals {
  readonly #names: WriteNames;
  /** Brokers an append of which did not count, and none has since. */
  readonly #losers = new Set<string>();
  /** Whether the last append of this broker counts: among those that lost nobody waits. */
  #hasWon = false;
  #turn: (() => void) | null = null;

  constructor(names: WriteNames) {
    this.#names = names;
  }

  /** An entry does not count. */
  lost(entry: LogEntry): void {
    if (this.#names.isOwn(entry)) this.#hasWon = false;
    else this.#losers.add(this.#names.processOf(entry));
  }

  /** An entry counts. */
  won(entry: LogEntry): void {
    if (this.#names.isOwn(entry)) this.#hasWon = true;
    this.#losers.delete(this.#names.processOf(entry));
    if (this.#losers.size === 0) this.#turn?.();
  }

  /** Resolves when all who lost have been first, or have had the time; null: nobody has to be waited for. */
  turn(): Promise<void> | null {
    if (!this.#hasWon || this.#losers.size === 0) return null;
    return new Promise((resolve) => {
      const end = (): void => {
        clearTimeout(late);
        this.#turn = null;
        this.#losers.clear();
        resolve();
      };
      const late = setTimeout(end, TURN_MS_MAX);
      this.#turn = end;
    });
  }
}
