/**
 * A publish that waits for its place in a replicated log.
 */

import type { Placed, Publish } from '../../broker/replicated-publish.js';

/** It gets one answer. */
export interface Waiting extends Publish {
  /** Whether all was taken up that the log had when it came: what another broker acknowledged before it is known. */
  isFresh: boolean;
  isSettled: boolean;
  placed(placed: Placed): void;
  refused(error: Error): void;
}

/** Who is told, once, what became of it. */
interface Answers {
  /** Called before either of the others. */
  readonly settled: () => void;
  readonly placed: (placed: Placed) => void;
  readonly refused: (error: Error) => void;
}

export function waitingPublish(publish: Publish, { settled, placed, refused }: Answers): Waiting {
  const answer = (say: () => void): void => {
    if (waiting.isSettled) return;
    waiting.isSettled = true;
    settled();
    say();
  };
  const waiting: Waiting = {
    ...publish,
    isFresh: false,
    isSettled: false,
    placed: (place) => answer(() => placed(place)),
    refused: (error) => answer(() => refused(error)),
  };
  return waiting;
}

/** The stream is no more: nothing was appended to it, and another may have its name by now. */
export class StreamGone extends Error {
  override readonly name = 'StreamGone';
}
