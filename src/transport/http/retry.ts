/**
 * When clients should come back: with jitter, or all of them come back at once.
 */

import type { EdgeServices } from '../edge-services.js';

/** The SSE `retry:` of one connection, milliseconds: half the setting up to one and a half times. */
export function retryMs(edge: EdgeServices): number {
  return Math.max(1, Math.round(edge.config.retryMs * (0.5 + edge.random())));
}

/** `Retry-After`, whole seconds, at least one. */
export function retryAfterSeconds(edge: Pick<EdgeServices, 'config' | 'random'>): string {
  return String(Math.max(1, Math.round((edge.config.retryMs * (0.5 + 2 * edge.random())) / 1000)));
}
