/**
 * Which streams have series of their own: a hundred thousand names would drown whoever stores them.
 */

import { largestLags, type StreamLag } from '../broker/lag.js';

export interface PickedStreams {
  has(name: string): boolean;
  /** Events that its subscriber furthest behind lacks. */
  lagOf(name: string): number;
}

export class StreamPicker {
  readonly #names: ReadonlySet<string>;
  readonly #prefixes: readonly string[];
  readonly #top: number;

  /** @param patterns names, or prefixes with a final `*`. */
  constructor(patterns: readonly string[], top: number) {
    this.#names = new Set(patterns.filter((pattern) => !pattern.endsWith('*')));
    this.#prefixes = patterns
      .filter((pattern) => pattern.endsWith('*'))
      .map((pattern) => pattern.slice(0, -1));
    this.#top = top;
  }

  /** @param lags of all edges; a stream may come from several. */
  pick(lags: readonly StreamLag[]): PickedStreams {
    const lagByName = largestLags(lags);
    const furthest = [...lagByName].sort(([, a], [, b]) => b - a).slice(0, this.#top);
    const top = new Set(furthest.map(([name]) => name));
    return {
      has: (name) =>
        top.has(name) || this.#names.has(name) || this.#prefixes.some((prefix) => name.startsWith(prefix)),
      lagOf: (name) => lagByName.get(name) ?? 0,
    };
  }
}
