/**
 * Subscriptions that somebody is answerable for: they end when the token does that they were opened with, or when its
 * key is taken away (contract 9.1).
 */

import type { Principal } from '../auth/principal.js';
import type { Subscription } from '../broker/subscription.js';
import { RequestError } from '../errors.js';

export interface SessionsOptions {
  /** Takes a subscription off the broker; its sink is still open then. */
  readonly unsubscribe: (subscription: Subscription) => void;
}

export class Sessions {
  readonly #options: SessionsOptions;
  /** Bounded by the subscriptions. */
  readonly #open = new Map<Subscription, Principal>();

  constructor(options: SessionsOptions) {
    this.#options = options;
  }

  /** After `subscribe`. */
  opened(subscription: Subscription, principal: Principal): void {
    if (principal.keyName !== '') this.#open.set(subscription, principal);
  }

  /** Told by the broker of each subscription that it has no more. */
  left(subscription: Subscription): void {
    this.#open.delete(subscription);
  }

  /** Ends those whose token has. @returns how many. */
  endExpired(nowMs: number): number {
    return this.#endWhere(({ expiresAtMs }) => expiresAtMs <= nowMs);
  }

  /** Ends those whose key is not among these any more. @returns how many. */
  endWithout(keyNames: ReadonlySet<string>): number {
    return this.#endWhere(({ keyName }) => !keyNames.has(keyName));
  }

  /** A proper end: the client comes back with its cursor, and is told why it may not. */
  #endWhere(isOver: (principal: Principal) => boolean): number {
    const refusal = new RequestError('unauthorized', undefined, { reason: 'expired' });
    let count = 0;
    for (const [subscription, principal] of this.#open) {
      if (!isOver(principal)) continue;
      this.#options.unsubscribe(subscription);
      subscription.sink.end({ kind: 'expired', refusal });
      count++;
    }
    return count;
  }
}
