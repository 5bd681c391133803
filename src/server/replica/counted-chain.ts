/**
 * Which entries of a stream in a replicated log count, as they are read one after the other: the first that follows the
 * newest that counts does. Where the log has lost entries in between, one of the next counts only if a later one names
 * it: before that, it may be one whose place was taken by an entry that is lost.
 */

import type { Link } from './newest-entry.js';

export class CountedChain<L extends Link> {
  #counted: number;
  /** Those after a loss, of which one may count. */
  #unsure: L[] = [];

  /** @param counted position of an entry that counts, before those that come; -1: it is not known. */
  constructor(counted: number) {
    this.#counted = counted;
  }

  /**
   * The entries that are known to count now and were not before, in their order.
   * @param newestAt position of an entry that counts and does not come before this one.
   */
  take(link: L, newestAt: number): L[] {
    const { previous } = link.entry;
    if (previous < this.#counted) return [];
    const named = this.#unsure.find(({ at }) => at === previous);
    if (named !== undefined) return this.#goOn([named, link]);
    const follows = previous === this.#counted && this.#unsure.length === 0;
    if (follows || link.at === newestAt) return this.#goOn([link]);
    if (previous > this.#counted) this.#unsure.push(link);
    return [];
  }

  #goOn(counted: L[]): L[] {
    this.#counted = (counted.at(-1) as L).at;
    this.#unsure = [];
    return counted;
  }
}
