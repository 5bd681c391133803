/**
 * Connections of this edge that read streams of MCP sessions. The front is told of each that leaves, and may end one for
 * the sake of a newer one.
 */

import type { Subscription } from '../../broker/subscription.js';
import type { McpFront } from './mcp-front.js';

export class McpReaders {
  readonly front: McpFront;
  readonly #unsubscribe: (subscription: Subscription) => void;
  /** Both bounded by the subscriptions. */
  readonly #names = new Map<Subscription, number>();
  readonly #subscriptions = new Map<number, Subscription>();
  #overtaken: Subscription | null = null;

  constructor(options: { front: McpFront; unsubscribe: (subscription: Subscription) => void }) {
    this.front = options.front;
    this.#unsubscribe = options.unsubscribe;
    this.front.onEnd((reader) => this.#end(reader));
  }

  /** After `subscribe`. */
  opened(reader: number, subscription: Subscription): void {
    this.#names.set(subscription, reader);
    this.#subscriptions.set(reader, subscription);
  }

  /** What comes next for it is gone; `left` follows at once. */
  overtaken(subscription: Subscription): void {
    this.#overtaken = subscription;
  }

  /** Told by the broker of each subscription that it has no more. */
  left(subscription: Subscription): void {
    const reader = this.#names.get(subscription);
    if (reader === undefined) return;
    this.#names.delete(subscription);
    this.#subscriptions.delete(reader);
    this.front.left(reader, subscription.delivered, this.#overtaken === subscription);
    this.#overtaken = null;
  }

  #end(reader: number): void {
    const subscription = this.#subscriptions.get(reader);
    // One that has left, or never came, is told of all the same: somebody waits for it.
    if (subscription === undefined) return this.front.left(reader, 0, false);
    this.#unsubscribe(subscription);
    subscription.sink.end({ kind: 'replaced' });
  }
}
