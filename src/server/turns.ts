/**
 * Runs so many actions at a time at most; the others wait, in the order in which they came.
 */

export class Turns {
  readonly #most: number;
  readonly #waiting: (() => void)[] = [];
  #underWay = 0;

  constructor(most: number) {
    this.#most = most;
  }

  async take<T>(act: () => Promise<T>): Promise<T> {
    if (this.#underWay === this.#most) await new Promise<void>((resolve) => this.#waiting.push(resolve));
    else this.#underWay++;
    try {
      return await act();
    } finally {
      const next = this.#waiting.shift();
      // The next in line has the place from now on, so that nobody who comes meanwhile can take it.
      if (next === undefined) this.#underWay--;
      else next();
    }
  }
}
