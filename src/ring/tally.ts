/**
 * Sums over very many keys in little shared memory, such as open subscriptions of an address: a count-min sketch. Each
 * key has a cell in every row, which it shares with others; the smallest of them is its sum, never too low, and too high
 * only where it meets a large one in each row. Lock-free, and bounded however many keys there are.
 *
 * TALLY: i32 cells, `ROWS` rows of `CELLS`, one row after the other. Any thread adds; one thread drains.
 */

const ROWS = 4;
const CELLS = 4096;
const TALLY_BYTES = ROWS * CELLS * Int32Array.BYTES_PER_ELEMENT;
/** Far below what a cell holds, and above every limit: what is added beyond it by many threads at once still fits. */
const LEVEL_MAX = 2 ** 30;

/** What is counted. A unit of bytes is 16 of them, so that a second of the highest rate fits. */
export const TallyOf = {
  addressSubscribers: 0,
  publishedEvents: 1,
  publishedByteUnits: 2,
  replayedByteUnits: 3,
} as const;
export const BYTES_PER_UNIT = 16;

/** Two words of a hash of the key that others cannot foresee. */
export interface TallyKey {
  readonly first: number;
  readonly second: number;
}

export function createTallies(): SharedArrayBuffer {
  return new SharedArrayBuffer(Object.keys(TallyOf).length * TALLY_BYTES);
}

export class Tally {
  readonly #cells: Int32Array;

  constructor(buffer: SharedArrayBuffer, index: number) {
    this.#cells = new Int32Array(buffer, index * TALLY_BYTES, ROWS * CELLS);
  }

  /** The sum of a key, or more. */
  level(key: TallyKey): number {
    let least = LEVEL_MAX;
    for (let row = 0; row < ROWS; row++) {
      least = Math.min(least, Atomics.load(this.#cells, cellOf(key, row)));
    }
    return least;
  }

  add(key: TallyKey, amount: number): void {
    if (amount > 0 && this.level(key) + amount > LEVEL_MAX) return;
    for (let row = 0; row < ROWS; row++) Atomics.add(this.#cells, cellOf(key, row), amount);
  }

  /** Takes so much from each sum, down to nothing: what is added then leaks away at a rate. By one thread only. */
  drain(amount: number): void {
    for (let cell = 0; cell < this.#cells.length; cell++) {
      const level = Atomics.load(this.#cells, cell);
      // Others only add meanwhile, so that it does not go below nothing.
      if (level > 0) Atomics.sub(this.#cells, cell, Math.min(level, amount));
    }
  }
}

function cellOf({ first, second }: TallyKey, row: number): number {
  // An odd step, so that keys which meet in one row rarely meet in the next.
  return row * CELLS + (((first + row * (second | 1)) >>> 0) % CELLS);
}
