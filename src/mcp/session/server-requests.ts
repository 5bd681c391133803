/** What the server of a session asked and the client has answered: a replay may have it answer twice. */

import type { RpcMessage } from '../json-rpc.js';
import { Newest } from '../newest.js';

/** Answers remembered, so that a repeat is not passed on. */
const ANSWERED_MAX = 1000;

export class ServerRequests {
  /** Ids, as JSON. */
  readonly #answered = new Newest<true>(ANSWERED_MAX);
  readonly #changed: () => void;

  constructor(changed: () => void) {
    this.#changed = changed;
  }

  /** Those that were answered, oldest first. */
  get answered(): string[] {
    return Array.from(this.#answered, ([id]) => id);
  }

  /** Takes over what another process has passed on. */
  restore(answered: readonly string[]): void {
    this.#answered.clear();
    for (const id of answered) this.#answered.set(id, true);
  }

  isFirstAnswer({ id }: RpcMessage): boolean {
    if (id === null) return true;
    if (this.#answered.has(id)) return false;
    this.#answered.set(id, true);
    this.#changed();
    return true;
  }

  /** The server has begun anew: it counts its requests from the beginning. */
  forget(): void {
    this.#answered.clear();
    this.#changed();
  }
}
