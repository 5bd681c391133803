/** What waits for its append in all streams of the front together, and for how long it may. */

import { FrontCount, type FrontCounts } from '../front-counts.js';

export class Backlog {
  /** How long a message may wait while nothing of its stream can be appended, milliseconds. */
  readonly waitMs: number;
  readonly #charactersMax: number;
  readonly #counts: FrontCounts;
  #characters = 0;

  constructor(options: { waitMs: number; charactersMax: number; counts: FrontCounts }) {
    this.waitMs = options.waitMs;
    this.#charactersMax = options.charactersMax;
    this.#counts = options.counts;
  }

  /** @returns false when too much waits already. */
  enter(characters: number): boolean {
    if (this.#characters + characters > this.#charactersMax) return false;
    this.#add(characters);
    return true;
  }

  leave(characters: number): void {
    this.#add(-characters);
  }

  #add(characters: number): void {
    this.#characters += characters;
    this.#counts.set(FrontCount.waitingCharacters, this.#characters);
  }
}
