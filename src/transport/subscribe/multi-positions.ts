/**
 * Where the peer of a connection is in each of its streams, and the ids that say so (contract 4.10, 4.11).
 */

import { assert } from '../../assert.js';
import { formatMultiCursor } from '../../core/multi-cursor.js';
import { formatPrefixCursor } from '../../core/prefix-cursor.js';
import type { SentHistory } from '../../core/sent-history.js';

export interface MultiPositions {
  /** Whether there are no other streams than those it began with, so that it is over when all of them are. */
  readonly isFixed: boolean;
  /** The id of where the peer is when it has been given a stream up to this; null: it cannot be told any more. */
  moved(index: number, seq: number): string | null;
  /** The id of the notice that one of the streams is over; undefined: it has none. */
  ended(index: number, kind: 'closed' | 'deleted'): string | undefined;
}

/** Positions that stand in the id. */
export class PositionsInId implements MultiPositions {
  readonly isFixed = true;
  readonly #fingerprint: number;
  /** In the order of the request. */
  readonly #seqs: number[];

  constructor({ fingerprint, seqs }: { fingerprint: number; seqs: readonly number[] }) {
    this.#fingerprint = fingerprint;
    this.#seqs = [...seqs];
  }

  moved(index: number, seq: number): string | null {
    assert(seq >= (this.#seqs[index] as number), 'I1: the seqs of a stream go up on a connection');
    this.#seqs[index] = seq;
    return formatMultiCursor(this.#fingerprint, this.#seqs);
  }

  ended(): undefined {
    return undefined;
  }
}

/** Positions that the server keeps; indexes are the tracks of the history. */
export class KeptPositions implements MultiPositions {
  readonly isFixed = false;
  readonly #token: string;
  readonly #history: SentHistory;

  constructor(token: string, history: SentHistory) {
    this.#token = token;
    this.#history = history;
  }

  /** The id of all that was sent. */
  get id(): string {
    return this.#idOf(this.#history.data.count);
  }

  moved(index: number, seq: number): string {
    return this.#idOf(this.#history.move(index, seq));
  }

  ended(index: number, kind: 'closed' | 'deleted'): string {
    return this.#idOf(kind === 'closed' ? this.#history.end(index) : this.#history.drop(index));
  }

  #idOf(count: number): string {
    return formatPrefixCursor({ token: this.#token, count });
  }
}
