/**
 * Names in order: put in order when somebody first asks for a list, and kept so from then on, for a list may be asked for
 * as often as a name comes or goes.
 */
export class SortedNames {
  readonly #all: () => Iterable<string>;
  /** Null: nobody has asked. */
  #sorted: string[] | null = null;

  /** @param all the names that there are */
  constructor(all: () => Iterable<string>) {
    this.#all = all;
  }

  added(name: string): void {
    this.#sorted?.splice(lowerBound(this.#sorted, name), 0, name);
  }

  removed(name: string): void {
    this.#sorted?.splice(lowerBound(this.#sorted, name), 1);
  }

  /** Those that begin so and come after `after`. Names may not come or go meanwhile. */
  *from(prefix: string, after: string): Generator<string> {
    this.#sorted ??= [...this.#all()].sort();
    const first = lowerBound(this.#sorted, prefix < after ? after : prefix);
    for (let i = first; i < this.#sorted.length; i++) {
      const name = this.#sorted[i] as string;
      if (!name.startsWith(prefix)) return;
      if (name > after) yield name;
    }
  }
}

/** First index whose name is not below `from`. */
function lowerBound(sorted: readonly string[], from: string): number {
  let low = 0;
  let high = sorted.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if ((sorted[middle] as string) < from) low = middle + 1;
    else high = middle;
  }
  return low;
}
