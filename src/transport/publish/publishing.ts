/**
 * A publish on its way into its stream (contract 3), whoever brought it: a request, or a message on a WebSocket.
 */

import type { ProducerClaim } from '../../ring/claim-judge.js';
import type { Caller } from '../admission/limits.js';
import type { EdgeServices } from '../edge-services.js';

/** Where the events of a publish stand. */
export interface Placed {
  readonly first: number;
  readonly last: number;
  /** They were appended by an earlier request of the same producer, or with the same key (contract 3.4). */
  readonly isDuplicate: boolean;
}

/** What is published, and who is told what came of it. */
export interface Publishing {
  readonly edge: EdgeServices;
  readonly caller: Caller;
  /** The name of the stream. */
  readonly name: string;
  /** As it was given, a cursor or not; empty: the publisher does not care where the head is. */
  readonly ifHead: string;
  /** Whose it is, where it is to be appended exactly once. */
  readonly claim: ProducerClaim | null;
  readonly bodyBytes: number;
  /** Frames the events into the edge's batch. @throws {RequestError} */
  decode(): void;
  published(epoch: string, placed: Placed): void;
  /** @param error what is no RequestError is a fault of ours. */
  fail(error: unknown): void;
  /** Has `gone` called when the publisher goes away before it is answered. */
  onGone(gone: () => void): void;
}
