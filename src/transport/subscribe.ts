/**
 * GET /v1/streams/{stream} with `Accept: text/event-stream` (contract 4).
 */

import type { HttpRequest } from 'uWebSockets.js';
import type { EdgeStream } from '../broker/edge-stream.js';
import { refusalFrame } from '../broker/refusal.js';
import type { TypeFilter } from '../broker/subscription.js';
import { formatCursor } from '../core/cursor.js';
import { lowestReadable } from '../core/resume.js';
import { primingFrame, retryFrame } from '../core/sse-frame.js';
import { RequestError } from '../errors.js';
import type { StreamPositions } from '../ring/lifecycle.js';
import type { Exchange, Headers } from './exchange.js';
import type { Query } from './query.js';
import { beginAfter, isCursor, readStart, refused, type Start } from './resume-request.js';
import { retryAfterSeconds, retryMs } from './retry.js';
import { SseSink } from './sse-sink.js';

/** How often a stream may be deleted under a subscriber before that is an error. */
const TRIES_MAX = 3;
/** Types in one filter. */
const TYPES_MAX = 64;

interface Subscribe {
  readonly name: string;
  readonly start: Start;
  readonly filter: TypeFilter | null;
  readonly tellUnavailable: boolean;
}

export function subscribe(
  exchange: Exchange,
  req: HttpRequest,
  name: string,
  query: Query,
): Promise<void> | void {
  const { edge } = exchange;
  if (edge.draining) {
    throw new RequestError('draining', undefined, {}, { 'Retry-After': retryAfterSeconds(edge) });
  }
  const request: Subscribe = {
    name,
    start: readStart(req.getHeader('last-event-id'), query.get('cursor'), edge.counters),
    filter: readFilter(query.get('types')),
    tellUnavailable: readOnUnavailable(query.get('on_unavailable')),
  };
  if (query.get('subscriber') !== undefined) {
    throw new RequestError('not_implemented', 'named subscribers are not part of this version');
  }
  const stream = edge.broker.streams.known(name);
  if (stream !== null && tryOpen(exchange, request, stream)) return;
  return openUnknown(exchange, request);
}

/** The first request that this edge sees for a stream: the directory knows where it is, or makes it. */
async function openUnknown(exchange: Exchange, request: Subscribe): Promise<void> {
  const { edge } = exchange;
  exchange.watch();
  // Who resumes in a stream that is no more is refused, and that alone creates nothing (contract 4.5).
  const create = !isCursor(request.start) || request.tellUnavailable;
  for (let attempt = 0; attempt < TRIES_MAX; attempt++) {
    const stream = await edge.broker.streams.resolve(request.name, create);
    if (exchange.done) return;
    if (stream === null) throw missing(exchange, request);
    if (tryOpen(exchange, request, stream)) return;
  }
  throw new RequestError('stream_not_found', 'the stream is being deleted over and over');
}

function missing(exchange: Exchange, request: Subscribe): RequestError {
  const { start } = request;
  if (!isCursor(start) || request.tellUnavailable) return new RequestError('stream_not_found');
  return refused('epoch_changed', formatCursor(start.epoch, start.seq), null, exchange.edge.counters);
}

/**
 * Classifies and registers in one step: interest first, then positions, then registration, all in this turn,
 * so that no append falls between (I8).
 * @returns false when the handle is old.
 */
function tryOpen(exchange: Exchange, request: Subscribe, stream: EdgeStream): boolean {
  const { broker } = exchange.edge;
  broker.expectReader(stream);
  try {
    const at = broker.positions(stream);
    if (at === null) return false;
    open(exchange, request, stream, at);
    return true;
  } finally {
    broker.releaseReader(stream);
  }
}

function open(exchange: Exchange, request: Subscribe, stream: EdgeStream, at: StreamPositions): void {
  const { edge } = exchange;
  let cursor: number;
  try {
    cursor = beginAfter(request.start, at, edge.counters);
  } catch (error) {
    if (!(error instanceof RequestError)) throw error;
    edge.log.info({ stream: stream.name, ...error.extra }, 'resume refused');
    if (!request.tellUnavailable) throw error;
    const frame = refusalFrame(error, { epoch: at.epoch, head: at.committed });
    exchange.send(200, streamHeaders(at), retryFrame(retryMs(edge)) + frame);
    return;
  }
  if (at.closed && cursor === at.committed) {
    exchange.answer(204, { 'Cache-Control': 'no-store', ...positionHeaders(at) }, (res) =>
      res.endWithoutBody(),
    );
    return;
  }
  exchange.answer(200, streamHeaders(at), (res) => {
    const sink = new SseSink(res, edge.broker);
    const { filter, tellUnavailable } = request;
    const subscription = edge.broker.subscribe(stream, { sink, cursor, filter, tellUnavailable });
    sink.attach(subscription);
    const taken = sink.write(retryFrame(retryMs(edge)) + primingFrame(stream.epoch, cursor));
    edge.broker.start(subscription, taken);
  });
}

// One literal and no spread: it is made for each subscriber, and all come at once after a restart.
function streamHeaders(at: StreamPositions): Headers {
  return {
    'Content-Type': 'text/event-stream',
    'Cache-Control': 'no-store, no-transform',
    'X-Accel-Buffering': 'no',
    // A client that comes back is to come on a connection of its own, and perhaps elsewhere.
    Connection: 'close',
    'Gapless-Epoch': at.epoch,
    'Gapless-Floor': String(lowestReadable(at)),
    'Gapless-Head': String(at.committed),
  };
}

/** Where a stream stands, as headers (contract 4.2). */
export function positionHeaders(at: StreamPositions): Headers {
  return {
    'Gapless-Epoch': at.epoch,
    'Gapless-Floor': String(lowestReadable(at)),
    'Gapless-Head': String(at.committed),
  };
}

function readOnUnavailable(value: string | undefined): boolean {
  if (value !== undefined && value !== 'event') {
    throw new RequestError('invalid_query', 'on_unavailable: expected "event"');
  }
  return value === 'event';
}

/** Filters that name the same types are the same, in whatever order. */
function readFilter(value: string | undefined): TypeFilter | null {
  if (value === undefined) return null;
  const types = new Set(value.split(',', TYPES_MAX + 1));
  if (types.has('') || types.size > TYPES_MAX) {
    throw new RequestError('invalid_query', `types: expected 1 to ${TYPES_MAX} event types, comma-separated`);
  }
  return { key: [...types].sort().join(','), types };
}
