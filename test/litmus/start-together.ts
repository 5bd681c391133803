/**
 * Returns when `all` threads have come here, counted from the beginning of the test, so that they are at work at the
 * same time, however long one of them took to wake up.
 * @param start one word, shared by them.
 */
export function startTogether(start: SharedArrayBuffer, all: number): void {
  const came = new Int32Array(start);
  if (Atomics.add(came, 0, 1) + 1 === all) Atomics.notify(came, 0);
  for (let count = Atomics.load(came, 0); count < all; count = Atomics.load(came, 0)) {
    Atomics.wait(came, 0, count, 1);
  }
}
