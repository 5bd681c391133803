/**
 * How a subscription ends when it is not the peer who ends it, and what of that is said to the peer. A sink says it
 * in its own way; this is how Server-Sent Events do.
 */

import { eventFrame, retryFrame } from '../core/sse-frame.js';
import type { RequestError } from '../errors.js';

export type Ending =
  /** The stream was closed and the peer has all of it, or it was deleted (contract 4.7). `cursor`: the last event written. */
  | { readonly kind: 'closed' | 'deleted'; readonly cursor: string }
  /** The peer cannot go on (contract 4.5, 4.6). `head`: the cursor of the newest event when it was refused. */
  | { readonly kind: 'unavailable'; readonly refusal: RequestError; readonly head: string }
  /** Another connection of the same peer takes its place. */
  | { readonly kind: 'replaced' }
  /** The token or key that it was opened with counts no more (contract 9.1). */
  | { readonly kind: 'expired'; readonly refusal: RequestError }
  /** The broker goes down; the peer is to come back after so long, milliseconds (contract 10). */
  | { readonly kind: 'drained'; readonly retryMs: number };

/**
 * The last frame of an event stream; empty where the end says enough: the peer comes back, and is told why it may not.
 * An in-band refusal has the head as its id, so that what follows has no hole.
 */
export function endingFrame(ending: Ending): string {
  switch (ending.kind) {
    case 'closed':
    case 'deleted':
      return eventFrame(`stream_${ending.kind}`, JSON.stringify({ cursor: ending.cursor }));
    case 'unavailable':
      return eventFrame('resume_unavailable', JSON.stringify(ending.refusal.problem()), ending.head);
    case 'replaced':
    case 'expired':
      return '';
    case 'drained':
      return retryFrame(ending.retryMs);
  }
}
