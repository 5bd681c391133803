/**
 * Whether a connection is kept, and a request let in at all (contract 9.3). What is bounded is the connections in use;
 * those that say nothing hold nobody up, and the library closes them. Bounds are over all edges.
 */

import type { HttpResponse } from 'uWebSockets.js';
import { RequestError } from '../../errors.js';
import { Counter } from '../../ring/counters.js';
import type { EdgeServices } from '../edge-services.js';
import { retryAfterSeconds } from '../http/retry.js';

/** @throws {RequestError} `too_many_connections` */
export function admit(edge: EdgeServices): void {
  if (edge.connections.inUse() < edge.connections.inUseMax) return;
  edge.counters.add(Counter.connectionsRefused, 1);
  throw new RequestError('too_many_connections', undefined, {}, { 'Retry-After': retryAfterSeconds(edge) });
}

/** What stays open is not begun while the server goes down. @throws {RequestError} `draining` */
export function refuseWhileDraining(edge: EdgeServices): void {
  if (!edge.draining) return;
  throw new RequestError('draining', undefined, {}, { 'Retry-After': retryAfterSeconds(edge) });
}

/**
 * Counts a connection that has come (1) or gone (-1). One too many is closed at once: without a descriptor left no
 * connection could be accepted, no file opened, and the loop would turn for nothing.
 */
export function countConnection(edge: EdgeServices, res: HttpResponse, change: number): void {
  const { counters, connections } = edge;
  counters.add(Counter.connections, change);
  if (change < 0) return;
  counters.add(Counter.connectionsOpened, 1);
  if (connections.open() <= connections.openMax) return;
  counters.add(Counter.connectionsDropped, 1);
  res.close();
}
