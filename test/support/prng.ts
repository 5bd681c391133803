import { randomInt } from 'node:crypto';
import type { TestContext } from 'node:test';

/** Small seeded generator (the 32-bit mix of splitmix), so that a seed alone repeats every decision of a test. */
export class Prng {
  #state: number;

  constructor(readonly seed: number) {
    this.#state = seed >>> 0;
  }

  /** An integer in [0, bound). */
  below(bound: number): number {
    return Math.floor((this.#next() / 0x1_0000_0000) * bound);
  }

  /** An integer in [min, max]. */
  between(min: number, max: number): number {
    return min + this.below(max - min + 1);
  }

  chance(probability: number): boolean {
    return this.#next() / 0x1_0000_0000 < probability;
  }

  pick<T>(items: readonly T[]): T {
    const item = items[this.below(items.length)];
    if (item === undefined) throw new RangeError('nothing to pick from');
    return item;
  }

  bytes(length: number): Buffer {
    const bytes = Buffer.allocUnsafe(length);
    for (let i = 0; i < length; i++) bytes[i] = this.#next() & 0xff;
    return bytes;
  }

  #next(): number {
    this.#state = (this.#state + 0x9e3779b9) >>> 0;
    let mixed = this.#state;
    mixed = Math.imul(mixed ^ (mixed >>> 16), 0x21f0aaad);
    mixed = Math.imul(mixed ^ (mixed >>> 15), 0x735a2d97);
    return (mixed ^ (mixed >>> 15)) >>> 0;
  }
}

/** A new seed each run, or the one in `GAPLESS_TEST_SEED`; printed with the test, so that a failure can be repeated. */
export function seededPrng(context: TestContext): Prng {
  const chosen = process.env.GAPLESS_TEST_SEED;
  const seed = chosen === undefined ? randomInt(0x1_0000_0000) : Number(chosen);
  if (!Number.isInteger(seed)) throw new RangeError(`GAPLESS_TEST_SEED is no integer: ${chosen}`);
  context.diagnostic(`reproduce with GAPLESS_TEST_SEED=${seed}`);
  return new Prng(seed);
}
