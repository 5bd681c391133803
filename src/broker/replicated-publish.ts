/**
 * A publish on its way into a log that brokers share: an edge has framed it, the coordinator has it appended.
 */

import type { Cursor } from '../core/cursor.js';
import type { EventParts } from '../core/event-parts.js';
import type { BookClaim } from '../core/producer-book.js';

export interface Publish {
  readonly parts: EventParts;
  /** Whose it is, where it is to be appended exactly once (contract 3.4). */
  readonly claim: BookClaim | null;
  /** Whether the stream is made where it is not there. */
  readonly creates: boolean;
  /** What the head has to be (contract 3.5); null: the publisher does not care. */
  readonly ifHead: Cursor | null;
}

/** Where the events of a publish stand. */
export interface Placed {
  readonly epoch: string;
  readonly first: number;
  readonly last: number;
  /** They were appended by an earlier request (contract 3.4). */
  readonly isDuplicate: boolean;
}
