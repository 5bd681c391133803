/**
 * A publish that waits for its place in a replicated log.
 */

import type { Placed, Publish } from '../broker/replicated-publish.js';

/** It gets one answer. */
export interface Waiting extends Publish {
  /** Whether all was taken up that the log had when it came: what another broker acknowledged before it is known. */
  isFresh: boolean;
  isSettled: boolean;
  placed(placed: Placed): void;
  refused(error: Error): void;
}

/** The stream is no more: nothing was appended to it, and another may have its name by now. */
export class StreamGone extends Error {
  override readonly name = 'StreamGone';
}
