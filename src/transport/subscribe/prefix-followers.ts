/**
 * The subscriptions by prefix of this edge, as the coordinator speaks to them: of new streams, and of cursors that somebody
 * else takes.
 */

import type { StreamRef } from '../../broker/edge-stream.js';

export interface Follower {
  /** A stream was made, of whatever name. */
  made(ref: StreamRef): void;
  /** Ends, and hands the cursor back. */
  release(): void;
}

export class PrefixFollowers {
  /** Bounded by the connections. */
  readonly #followers = new Map<number, Follower>();
  #lastId = 0;

  /** Before the coordinator is asked, so that nothing that it says is missed. @returns its number */
  add(follower: Follower): number {
    const id = ++this.#lastId;
    this.#followers.set(id, follower);
    return id;
  }

  remove(id: number): void {
    this.#followers.delete(id);
  }

  made(ref: StreamRef): void {
    for (const follower of [...this.#followers.values()]) follower.made(ref);
  }

  /** One that is over has handed its cursor back. */
  release(id: number): void {
    this.#followers.get(id)?.release();
  }
}
