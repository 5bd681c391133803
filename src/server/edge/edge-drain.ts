/**
 * Sending an edge's subscribers away (contract 10): spread over the drain time, each with a jittered `retry:`
 * and a proper end, so that they resume elsewhere and not all at once.
 */

import type { EdgeServices } from '../../transport/edge-services.js';
import { retryMs } from '../../transport/http/retry.js';

const STEP_MS = 50;

/** Resolves when no subscriber is left and what was published is committed, or the time is over. */
export function drainEdge(edge: EdgeServices, drainMs: number): Promise<void> {
  edge.draining = true;
  edge.broker.wakeReaders();
  let stepsLeft = Math.max(1, Math.floor(drainMs / STEP_MS));
  return new Promise((resolve) => {
    const step = (): void => {
      // An equal share of those who are left, at random, so that those who came early are not sent away first.
      const share = 1 / stepsLeft;
      edge.broker.endWhere(
        () => edge.random() < share,
        // Whoever comes back before this broker is gone is refused, and an EventSource gives up when it is refused.
        () => ({ kind: 'drained', retryMs: stepsLeft * STEP_MS + retryMs(edge) }),
        stepsLeft === 1,
      );
      stepsLeft--;
      const publishes = edge.broker.uncommittedPublishes + edge.sharedPublishes;
      const isBusy = edge.broker.subscriberCount > 0 || publishes > 0;
      if (stepsLeft > 0 && isBusy) setTimeout(step, STEP_MS);
      else resolve();
    };
    step();
  });
}
