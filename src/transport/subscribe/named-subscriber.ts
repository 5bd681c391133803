/**
 * Named subscribers over HTTP: how one joins, acknowledges and is forgotten (contract 4.8, 7).
 */

import { type Cursor, parseCursor } from '../../core/cursor.js';
import type { Start } from '../../core/resume.js';
import { isStreamName } from '../../core/stream-name.js';
import { RequestError } from '../../errors.js';
import type { EdgeServices } from '../edge-services.js';
import type { Exchange } from '../http/exchange.js';
import { readJson } from '../http/json-body.js';
import type { Query } from '../http/query.js';
import type { RequestView } from '../http/request-view.js';
import { type Entrant, enterStream, findStream } from './enter-stream.js';

/** One that may have a name. Where it begins is said when its name has been looked up. */
export interface NamedEntrant extends Entrant {
  start: Start;
}

/** The name of a subscription; null where it has none. @throws {RequestError} `invalid_query` */
export function readSubscriber(query: Query): string | null {
  const subscriber = query.get('subscriber');
  if (subscriber === undefined) return null;
  // Of the same characters as a stream's, so that it stands in a path.
  if (!isStreamName(subscriber)) throw new RequestError('invalid_query', 'subscriber: expected a name');
  return subscriber;
}

/** Lets somebody into a stream, under a name if it has one: it then begins at what is known of it, unless it says. */
export function enterAs(
  edge: EdgeServices,
  entrant: NamedEntrant,
  subscriber: string | null,
): Promise<void> | void {
  return subscriber === null ? enterStream(edge, entrant) : enterNamed(edge, entrant, subscriber);
}

async function enterNamed(edge: EdgeServices, entrant: NamedEntrant, subscriber: string): Promise<void> {
  if ((await findStream(edge, entrant)) === null) return;
  const joined = await edge.coordinator.join(entrant.name, subscriber, entrant.start);
  if (entrant.isGone) return;
  if (joined === null) throw new RequestError('stream_not_found', 'it was deleted meanwhile');
  entrant.start = joined.start;
  return enterStream(edge, entrant);
}

/** POST /v1/streams/{stream}/ack (contract 7). */
export async function acknowledge(exchange: Exchange, name: string, req: RequestView): Promise<void> {
  const { subscriber, cursor } = readAcknowledgement(await readJson(exchange, req));
  const acked = await exchange.edge.coordinator.acknowledge(name, subscriber, cursor);
  if (acked === null) throw new RequestError('stream_not_found');
  exchange.sendJson(200, { subscriber, acked });
}

/** DELETE /v1/streams/{stream}/subscribers/{subscriber} (contract 7). */
export async function forget(exchange: Exchange, name: string, subscriber: string): Promise<void> {
  exchange.watch();
  if (!(await exchange.edge.coordinator.forget(name, subscriber))) {
    throw new RequestError('subscriber_not_found');
  }
  exchange.answer(204, { 'Cache-Control': 'no-store' }, (res) => res.endWithoutBody());
}

function readAcknowledgement(json: unknown): { subscriber: string; cursor: Cursor } {
  const { subscriber, cursor } = (typeof json === 'object' && json !== null ? json : {}) as Record<
    string,
    unknown
  >;
  if (typeof subscriber !== 'string' || !isStreamName(subscriber)) {
    throw new RequestError('invalid_body', 'subscriber: expected the name of a subscriber');
  }
  return { subscriber, cursor: readCursor(cursor) };
}

/** @throws {RequestError} `malformed` */
export function readCursor(value: unknown): Cursor {
  const cursor = typeof value === 'string' ? parseCursor(value) : null;
  if (cursor === null) throw new RequestError('malformed', 'cursor: expected "<epoch>.<seq>"');
  return cursor;
}
