/**
 * Whether a request is let in at all: connections are bounded, over all edges (contract 9.3).
 */

import { RequestError } from '../errors.js';
import { Counter } from '../ring/counters.js';
import type { EdgeServices } from './edge-services.js';
import { retryAfterSeconds } from './retry.js';

/** @throws {RequestError} `too_many_connections` */
export function admit(edge: EdgeServices): void {
  if (edge.connections.count() <= edge.connections.max) return;
  edge.counters.add(Counter.connectionsRefused, 1);
  throw new RequestError('too_many_connections', undefined, {}, { 'Retry-After': retryAfterSeconds(edge) });
}
