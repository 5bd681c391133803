/**
 * All subscriptions of an edge. To join and to leave cost the same however many there are.
 */

import type { Subscription } from './subscription.js';

export class SubscriptionList {
  readonly #list: Subscription[] = [];

  get size(): number {
    return this.#list.length;
  }

  add(subscription: Subscription): void {
    subscription.edgeIndex = this.#list.length;
    this.#list.push(subscription);
  }

  /** The last one takes the place. */
  remove(subscription: Subscription): void {
    const last = this.#list.pop() as Subscription;
    if (last !== subscription) {
      this.#list[subscription.edgeIndex] = last;
      last.edgeIndex = subscription.edgeIndex;
    }
    subscription.edgeIndex = -1;
  }

  /** From the last to the first, so that the one at hand may leave, and others behind it. */
  *[Symbol.iterator](): Generator<Subscription> {
    for (let i = this.#list.length - 1; i >= 0; i--) {
      const subscription = this.#list[i];
      if (subscription !== undefined) yield subscription;
    }
  }
}
