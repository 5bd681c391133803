/** Middle, lowest and highest of some samples. */
export interface Spread {
  readonly median: number;
  readonly min: number;
  readonly max: number;
}

/** @throws RangeError if there is no sample */
export function spreadOf(samples: readonly number[]): Spread {
  const sorted = [...samples].sort((a, b) => a - b);
  const [min, max] = [sorted[0], sorted.at(-1)];
  const low = sorted[Math.floor((sorted.length - 1) / 2)];
  const high = sorted[Math.floor(sorted.length / 2)];
  if (min === undefined || max === undefined || low === undefined || high === undefined) {
    throw new RangeError('no samples');
  }
  return { median: (low + high) / 2, min, max };
}
