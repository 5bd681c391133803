/**
 * Something that is asked of the log, once for all who want it: one round is under way at a time, and who asks meanwhile
 * shares the next one, for what is under way may have been answered before.
 */

export class FreshRound {
  readonly #ask: () => Promise<void>;
  #now: Promise<void> | null = null;
  #next: Promise<void> | null = null;

  constructor(ask: () => Promise<void>) {
    this.#ask = ask;
  }

  /** Resolves, or rejects, with a round that began no earlier than this call. */
  take(): Promise<void> {
    if (this.#next !== null) return this.#next;
    if (this.#now === null) return this.#begin();
    const begin = (): Promise<void> => this.#begin();
    this.#next = this.#now.then(begin, begin);
    return this.#next;
  }

  /** Whether another round follows the one that is under way. */
  get isAwaited(): boolean {
    return this.#next !== null;
  }

  #begin(): Promise<void> {
    this.#next = null;
    const round = this.#ask().finally(() => {
      if (this.#now === round) this.#now = null;
    });
    this.#now = round;
    return round;
  }
}
