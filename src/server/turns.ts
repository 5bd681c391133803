/**
 * Has so many acts at most under way at a time; the others wait, in the order in which they came.
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
      // Whose turn it is takes the place over, so that nobody who comes now can have it.
      if (next === undefined) this.#underWay--;
      else next();
    }
  }
}
