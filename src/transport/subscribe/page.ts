/**
 * GET /v1/streams/{stream} as a page of events, with a wait for the next one if asked (contract 6).
 */

import type { EdgeStream, Waiter } from '../../broker/edge-stream.js';
import { formatCursor } from '../../core/cursor.js';
import type { Start } from '../../core/resume.js';
import { RequestError } from '../../errors.js';
import { Counter } from '../../ring/counters.js';
import type { StreamPositions } from '../../ring/lifecycle.js';
import { READ_GONE, READ_OVERTAKEN } from '../../ring/read.js';
import { encodePage, type PageFormat } from '../../wire/page.js';
import type { Exchange, Headers } from '../http/exchange.js';
import type { Query } from '../http/query.js';
import { askIfBehind } from './enter-stream.js';
import { beginAfter, isCursor, readStart, refused } from './resume-request.js';
import { positionHeaders } from './subscribe.js';

const CONTENT_TYPE: Readonly<Record<PageFormat, string>> = {
  json: 'application/json',
  ndjson: 'application/x-ndjson',
  msgpack: 'application/msgpack',
};

interface PageRequest {
  readonly name: string;
  readonly format: PageFormat;
  readonly start: Start;
  readonly limit: number;
  readonly waitMs: number;
}

export async function readPage(
  exchange: Exchange,
  name: string,
  format: PageFormat,
  query: Query,
): Promise<void> {
  const { config, counters, broker } = exchange.edge;
  const { pageEventsMax, longPollMsMax } = config;
  const request: PageRequest = {
    name,
    format,
    start: readStart('', query.get('cursor') ?? 'earliest', counters),
    limit: query.count('limit', { min: 1, max: pageEventsMax, absent: pageEventsMax }),
    waitMs: Math.min(
      1000 * query.count('wait', { min: 0, max: Math.floor(longPollMsMax / 1000), absent: 0 }),
      Math.max(0, exchange.principal.expiresAtMs - exchange.edge.now()),
    ),
  };
  exchange.watch();
  // Who waits subscribes, in a way; who only looks finds nothing where nothing is (contract 2.4).
  const create = request.waitMs > 0 && !isCursor(request.start);
  let stream = broker.streams.known(name) ?? (await broker.streams.resolve(name, create));
  const asked = askIfBehind(exchange.edge, name, request.start);
  if (asked !== null) {
    await asked;
    stream = broker.streams.known(name) ?? (await broker.streams.resolve(name, create));
  }
  if (exchange.done) return;
  const at = stream === null ? null : broker.positions(stream);
  if (stream === null || at === null) throw missing(exchange, request);
  const afterSeq = beginAfter(request.start, at, counters);
  exchange.edge.limits.admitReplay(exchange, at, afterSeq);
  if (afterSeq < at.committed || at.closed || request.waitMs === 0 || exchange.edge.draining) {
    await answer(exchange, request, stream, afterSeq);
  } else {
    await untilMore(exchange, stream, afterSeq, request.waitMs);
    if (!exchange.done) await answer(exchange, request, stream, afterSeq);
  }
}

function missing(exchange: Exchange, { start }: PageRequest): RequestError {
  if (!isCursor(start)) return new RequestError('stream_not_found');
  return refused('epoch_changed', formatCursor(start.epoch, start.seq), null, exchange.edge.counters);
}

/** Resolves when there is more than `afterSeq`, when the wait is over, or when the peer is gone. */
function untilMore(exchange: Exchange, stream: EdgeStream, afterSeq: number, waitMs: number): Promise<void> {
  const { broker } = exchange.edge;
  return new Promise((resolve) => {
    const waiter: Waiter = { afterSeq, reads: true, wake: finish };
    const timer = setTimeout(finish, waitMs);
    function finish(): void {
      clearTimeout(timer);
      broker.removeWaiter(stream, waiter);
      resolve();
    }
    exchange.onGone(finish);
    broker.expectReader(stream);
    broker.addWaiter(stream, waiter);
  });
}

async function answer(
  exchange: Exchange,
  request: PageRequest,
  stream: EdgeStream,
  afterSeq: number,
): Promise<void> {
  const { broker, counters } = exchange.edge;
  const { found, events } = await broker.readEvents(stream, afterSeq);
  const at = broker.positions(stream);
  const cursor = formatCursor(stream.epoch, afterSeq);
  if (found === READ_GONE || at === null) throw refused('epoch_changed', cursor, null, counters);
  if (found === READ_OVERTAKEN) throw refused('evicted', cursor, at, counters);
  counters.add(Counter.pages, 1);
  const shown = events.slice(0, request.limit);
  const lastSeq = shown.at(-1)?.seq ?? afterSeq;
  const page = {
    events: shown,
    epoch: stream.epoch,
    next: formatCursor(stream.epoch, lastSeq),
    upToDate: lastSeq === at.committed,
    closed: at.closed,
  };
  exchange.send(200, pageHeaders(request.format, page, at), encodePage(request.format, page));
}

function pageHeaders(
  format: PageFormat,
  page: { next: string; upToDate: boolean; closed: boolean },
  at: StreamPositions,
): Headers {
  return {
    'Content-Type': CONTENT_TYPE[format],
    'Cache-Control': 'no-store',
    'Gapless-Next': page.next,
    'Gapless-Up-To-Date': String(page.upToDate),
    'Gapless-Closed': String(page.closed),
    ...positionHeaders(at),
  };
}
