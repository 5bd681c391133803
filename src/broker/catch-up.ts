/**
 * How long readers who are below the ring take to come back into it: from when their next event was in the durable log
 * only, until they were given the last run that they need from there. Cold path.
 */

import { CounterHistogram, type Counters } from '../ring/counters.js';
import type { Subscription } from './subscription.js';

export class CatchUp {
  readonly #counters: Counters;
  readonly #now: () => number;
  /** By reader, Unix time in milliseconds. Who leaves before it is back is forgotten with its subscription. */
  readonly #behindSinceMs = new WeakMap<Subscription, number>();

  /** @param now Unix time, milliseconds. */
  constructor(counters: Counters, now: () => number) {
    this.#counters = counters;
    this.#now = now;
  }

  /** The reader's next event is in the log only. */
  isBehind(subscription: Subscription): void {
    if (!this.#behindSinceMs.has(subscription)) this.#behindSinceMs.set(subscription, this.#now());
  }

  /** What the reader is given next ends where the ring begins, or later. */
  isBack(subscription: Subscription): void {
    const sinceMs = this.#behindSinceMs.get(subscription);
    if (sinceMs === undefined) return;
    this.#behindSinceMs.delete(subscription);
    // A clock that was set back meanwhile must not take from the sum.
    this.#counters.observe(CounterHistogram.catchUpSeconds, Math.max(0, this.#now() - sinceMs) / 1000);
  }
}
