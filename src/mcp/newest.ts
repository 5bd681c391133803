/** A map that keeps so many ids at most, the newest. */
export class Newest<Value> implements Iterable<[id: string, value: Value]> {
  readonly #max: number;
  /** Oldest first. */
  readonly #values = new Map<string, Value>();

  constructor(max: number) {
    this.#max = max;
  }

  has(id: string): boolean {
    return this.#values.has(id);
  }

  set(id: string, value: Value): void {
    this.#values.set(id, value);
    if (this.#values.size <= this.#max) return;
    for (const oldest of this.#values.keys()) {
      this.#values.delete(oldest);
      break;
    }
  }

  delete(id: string): void {
    this.#values.delete(id);
  }

  clear(): void {
    this.#values.clear();
  }

  [Symbol.iterator](): Iterator<[string, Value]> {
    return this.#values.entries();
  }
}
