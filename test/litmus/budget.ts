const SECONDS_DEFAULT = 3;

/** `LITMUS_SECONDS`, for a long run by hand. It ends nothing that is being judged. */
function litmusMs(): number {
  const chosen = process.env.LITMUS_SECONDS;
  const seconds = chosen === undefined ? SECONDS_DEFAULT : Number(chosen);
  if (!(seconds > 0)) throw new RangeError(`LITMUS_SECONDS is no number of seconds: ${chosen}`);
  return seconds * 1000;
}

/** Says whether a test's share of the budget has room for another round. The first is always run. */
export function rounds(share: number): { next(): boolean; readonly count: number } {
  const endsAt = performance.now() + share * litmusMs();
  let count = 0;
  return {
    next() {
      if (count > 0 && performance.now() >= endsAt) return false;
      count++;
      return true;
    },
    get count() {
      return count;
    },
  };
}
