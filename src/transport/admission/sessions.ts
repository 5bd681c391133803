/**
 * Subscriptions that somebody is answerable for, and that count for an address: they end when the token does that they were opened with, or when its
 * key is taken away (contract 9.1).
 */

import type { Principal } from '../../auth/principal.js';
import type { Subscription } from '../../broker/subscription.js';
import { RequestError } from '../../errors.js';
import type { Caller, Limits } from './limits.js';

export interface SessionsOptions {
  /** Takes a subscription off the broker; its sink is still open then. */
  readonly unsubscribe: (subscription: Subscription) => void;
  readonly limits: Limits;
}

export class Sessions {
  readonly #options: SessionsOptions;
  /** Bounded by the subscriptions. */
  readonly #open = new Map<Subscription, Caller>();

  constructor(options: SessionsOptions) {
    this.#options = options;
  }

  /** After `subscribe`. */
  opened(subscription: Subscription, { principal, address }: Caller): void {
    if (principal.keyName === '' && address === null) return;
    // A new object: an exchange would be held as long as its subscription.
    this.#open.set(subscription, { principal, address });
    this.#options.limits.countSubscriber(address, 1);
  }

  /** Who opened a subscription; null where nobody is answerable. */
  principalOf(subscription: Subscription): Principal | null {
    return this.#open.get(subscription)?.principal ?? null;
  }

  /** Told by the broker of each subscription that it has no more. */
  left(subscription: Subscription): void {
    const caller = this.#open.get(subscription);
    if (caller === undefined) return;
    this.#open.delete(subscription);
    this.#options.limits.countSubscriber(caller.address, -1);
  }

  /** Ends those whose token has. @returns how many. */
  endExpired(nowMs: number): number {
    return this.#endWhere(({ expiresAtMs }) => expiresAtMs <= nowMs);
  }

  /** Ends those whose key is not among these any more. @returns how many. */
  endWithout(keyNames: ReadonlySet<string>): number {
    return this.#endWhere(({ keyName }) => keyName !== '' && !keyNames.has(keyName));
  }

  /** A proper end: the client comes back with its cursor, and is told why it may not. */
  #endWhere(isOver: (principal: Principal) => boolean): number {
    const refusal = new RequestError('unauthorized', undefined, { reason: 'expired' });
    let count = 0;
    for (const [subscription, { principal }] of this.#open) {
      if (!isOver(principal)) continue;
      this.#options.unsubscribe(subscription);
      subscription.sink.end({ kind: 'expired', refusal });
      count++;
    }
    return count;
  }
}
