/**
 * Streams as things: create, list, look at, close, delete (contract 2). Cold path: the coordinator answers.
 */

import type { StreamState } from '../broker/directory.js';
import type { StreamRef } from '../broker/edge-stream.js';
import { formatCursor } from '../core/cursor.js';
import { RequestError } from '../errors.js';
import type { Exchange } from './http/exchange.js';
import { readJson } from './http/json-body.js';
import { Query } from './http/query.js';
import type { RequestView } from './http/request-view.js';
import { positionHeaders } from './subscribe/subscribe.js';

const LIST_LIMIT_ABSENT = 100;
const LIST_LIMIT_MAX = 1000;

/** PUT /v1/streams/{stream} (2.1). */
export async function createStream(exchange: Exchange, name: string, req: RequestView): Promise<void> {
  const config = await readJson(exchange, req);
  const { ref, created } = await exchange.edge.coordinator.put(name, config);
  exchange.sendJson(created ? 201 : 200, describe(ref), { 'Gapless-Epoch': ref.epoch });
}

/** GET /v1/streams (2.2). */
export async function listStreams(exchange: Exchange, _name: string, req: RequestView): Promise<void> {
  const query = new Query(req.getQuery());
  const limit = query.count('limit', { min: 1, max: LIST_LIMIT_MAX, absent: LIST_LIMIT_ABSENT });
  const prefix = query.get('prefix') ?? '';
  const after = query.get('after') ?? '';
  const lag = query.flag('lag');
  exchange.watch();
  const states = await exchange.edge.coordinator.list({ prefix, after, limit: limit + 1, lag });
  const shown = states.slice(0, limit);
  const next = states.length > limit ? (shown.at(-1) as StreamState).ref.name : null;
  exchange.sendJson(
    200,
    { streams: shown.map((stream) => ({ ...state(stream), ...stream.lags })), next },
    { 'Cache-Control': 'no-store' },
  );
}

/** GET /v1/streams/{stream}/state (2.2). */
export async function showState(exchange: Exchange, name: string): Promise<void> {
  exchange.watch();
  const found = await exchange.edge.coordinator.state(name);
  if (found === null) throw new RequestError('stream_not_found');
  exchange.sendJson(200, { ...state(found), named: found.named }, { 'Cache-Control': 'no-store' });
}

/** GET /v1/streams/{stream}/readers (2.5). */
export async function showReaders(exchange: Exchange, name: string, req: RequestView): Promise<void> {
  const query = new Query(req.getQuery());
  const limit = query.count('limit', { min: 1, max: LIST_LIMIT_MAX, absent: LIST_LIMIT_ABSENT });
  exchange.watch();
  const found = await exchange.edge.coordinator.readers(name, limit);
  if (found === null) throw new RequestError('stream_not_found');
  const { readers, count, named, isWhole } = found;
  exchange.sendJson(
    200,
    { ...state(found), named, readers: { total: count, complete: isWhole, slowest: readers } },
    { 'Cache-Control': 'no-store' },
  );
}

/** HEAD /v1/streams/{stream} (2.2). */
export async function showHead(exchange: Exchange, name: string): Promise<void> {
  exchange.watch();
  const found = await exchange.edge.coordinator.state(name);
  if (found === null) {
    throw new RequestError('stream_not_found');
  }
  const { positions } = found;
  const headers = {
    'Cache-Control': 'no-store',
    ...positionHeaders(positions),
    'Gapless-Cursor': formatCursor(positions.epoch, positions.committed),
    'Gapless-Closed': String(positions.closed),
  };
  exchange.answer(200, headers, (res) => res.endWithoutBody());
}

/** POST /v1/streams/{stream}/close (2.3). */
export async function closeStream(exchange: Exchange, name: string): Promise<void> {
  exchange.watch();
  const ref = await exchange.edge.coordinator.close(name);
  const found = ref === null ? null : await exchange.edge.coordinator.state(name);
  if (found === null) throw new RequestError('stream_not_found');
  const cursor = formatCursor(found.positions.epoch, found.positions.head);
  exchange.sendJson(200, { cursor, closed: true }, { 'Gapless-Cursor': cursor });
}

/** DELETE /v1/streams/{stream} (2.3). */
export async function deleteStream(exchange: Exchange, name: string): Promise<void> {
  exchange.watch();
  if (!(await exchange.edge.coordinator.remove(name))) throw new RequestError('stream_not_found');
  exchange.answer(204, { 'Cache-Control': 'no-store' }, (res) => res.endWithoutBody());
}

function describe(ref: StreamRef): Record<string, unknown> {
  return { name: ref.name, epoch: ref.epoch, ...ref.config };
}

function state({ ref, positions }: StreamState): Record<string, unknown> {
  const { floor, logFloor, committed, head, bytes, subscribers, closed } = positions;
  return { ...describe(ref), floor, logFloor, committed, head, bytes, subscribers, closed };
}
