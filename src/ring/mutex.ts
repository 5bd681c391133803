/**
 * A mutex on one word of shared memory: 0 free, 1 taken, 2 taken with waiters.
 *
 * Sections under it last about a microsecond, so contenders spin first. They sleep only when the
 * holder was descheduled, and in short turns, so that an edge is never away from its sockets for long.
 * Nothing in a section may throw on input: a holder that dies leaves the lock taken, and the process ends.
 *
 * Hot path: no allocation, no closures.
 */

import { assert } from '../assert.js';

const SPINS_MAX = 2000;
const SLEEP_MS = 1;
/** A holder that is away for this many sleeps is dead or stuck, and so is what it guarded. */
const SLEEPS_MAX = 30_000;

export function lock(words: Int32Array, index: number): void {
  for (let spin = 0; spin < SPINS_MAX; spin++) {
    if (Atomics.compareExchange(words, index, 0, 1) === 0) return;
  }
  for (let sleep = 0; sleep < SLEEPS_MAX; sleep++) {
    if (Atomics.exchange(words, index, 2) === 0) return;
    Atomics.wait(words, index, 2, SLEEP_MS);
  }
  assert(false, 'mutex: a lock was held for 30 s');
}

export function unlock(words: Int32Array, index: number): void {
  const before = Atomics.exchange(words, index, 0);
  assert(before !== 0, 'mutex: unlock of a free lock');
  if (before === 2) Atomics.notify(words, index, 1);
}
