/**
 * What was found out about credentials lately: so many at most, the oldest forgotten first.
 *
 * Hot path: found by its end, for the hash of a whole token costs more than all else that a look takes. The end of a
 * token is of its signature, and that of a static key is random, so two that are in use do not have the same; if they
 * did, one would be found out about again. It is the whole credential that is compared.
 */

/** Characters: 96 bits of a signature. */
const END_LENGTH = 16;

interface Recent<T> {
  readonly credential: string;
  readonly result: T;
  /** Unix time, milliseconds. */
  readonly untilMs: number;
}

export class RecentResults<T> {
  readonly #countMax: number;
  readonly #byEnd = new Map<string, Recent<T>>();

  constructor(countMax: number) {
    this.#countMax = countMax;
  }

  get(credential: string, nowMs: number): T | null {
    const recent = this.#byEnd.get(credential.slice(-END_LENGTH));
    if (recent === undefined || recent.credential !== credential || nowMs >= recent.untilMs) return null;
    return recent.result;
  }

  put(credential: string, result: T, untilMs: number): void {
    const end = credential.slice(-END_LENGTH);
    this.#byEnd.delete(end);
    if (this.#byEnd.size >= this.#countMax) {
      const [oldest] = this.#byEnd.keys();
      this.#byEnd.delete(oldest as string);
    }
    this.#byEnd.set(end, { credential, result, untilMs });
  }

  clear(): void {
    this.#byEnd.clear();
  }
}
