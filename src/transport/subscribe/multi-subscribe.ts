/**
 * GET /v1/streams?stream=a&stream=b with `Accept: text/event-stream` (contract 4.10).
 */

import type { HttpResponse } from 'uWebSockets.js';
import type { EdgeStream } from '../../broker/edge-stream.js';
import type { EventTypes } from '../../broker/rendering.js';
import { formatCursor, parseCursor } from '../../core/cursor.js';
import {
  fingerprintOf,
  formatMultiCursor,
  MULTI_STREAMS_MAX,
  parseMultiCursor,
} from '../../core/multi-cursor.js';
import type { Start } from '../../core/resume.js';
import { primingFrame, retryFrame } from '../../core/sse-frame.js';
import { isStreamName } from '../../core/stream-name.js';
import { RequestError } from '../../errors.js';
import type { StreamPositions } from '../../ring/lifecycle.js';
import { refuseWhileDraining } from '../admission/admission.js';
import type { EdgeServices } from '../edge-services.js';
import { SUBSCRIPTION_HEADERS } from '../http/event-stream.js';
import type { Exchange } from '../http/exchange.js';
import type { Query } from '../http/query.js';
import type { RequestView } from '../http/request-view.js';
import { retryMs } from '../http/retry.js';
import {
  type Begun,
  beginOne,
  noteResumes,
  type RefusedStream,
  refusalOf,
  refusedOf,
  subscribeOne,
} from './multi-begin.js';
import { MultiConnection, refusedFrame } from './multi-connection.js';
import { PositionsInId } from './multi-positions.js';
import { isCursor, readStart, refused } from './resume-request.js';
import { readOnUnavailable, readTypes } from './subscribe.js';

/** How often streams may be deleted under a subscriber before that is an error. */
const TRIES_MAX = 3;

interface MultiCursor {
  readonly fingerprint: number;
  readonly seqs: readonly number[];
}

interface MultiSubscribe {
  readonly names: readonly string[];
  /** A word, null, what the cursor says of each stream, or where each begins by a cursor of its own. */
  readonly start: 'earliest' | 'latest' | null | MultiCursor | readonly Start[];
  /** The cursor as it was given. */
  readonly given: string;
  readonly types: EventTypes | null;
  readonly tellUnavailable: boolean;
}

export async function subscribeToMany(exchange: Exchange, req: RequestView, query: Query): Promise<void> {
  const { edge } = exchange;
  refuseWhileDraining(edge);
  const request = readRequest(edge, req.getHeader('last-event-id'), query);
  exchange.watch();
  // Positions may be of events, or streams, that other brokers have and this one not yet (I2).
  if (edge.sharesLog && hasPositions(request.start)) {
    await Promise.all(request.names.map((name) => edge.coordinator.refresh(name, null)));
  }
  for (let attempt = 0; attempt < TRIES_MAX; attempt++) {
    const streams = await findAll(exchange, request);
    if (exchange.done) return;
    if (tryEnter(exchange, request, streams)) return;
  }
  throw new RequestError('stream_not_found', 'the streams are being deleted over and over');
}

function readRequest(edge: EdgeServices, lastEventId: string, query: Query): MultiSubscribe {
  const names = query.all('stream');
  if (names.length < 1 || names.length > MULTI_STREAMS_MAX || new Set(names).size < names.length) {
    throw new RequestError('invalid_query', `stream: expected 1 to ${MULTI_STREAMS_MAX} different streams`);
  }
  if (!names.every(isStreamName)) throw new RequestError('invalid_stream_name');
  if (query.get('subscriber') !== undefined) {
    throw new RequestError('invalid_query', 'subscriber: it is of one stream');
  }
  const cursors = lastEventId !== '' ? [lastEventId] : query.all('cursor');
  return {
    names,
    start: readMultiStart(edge, cursors, names.length),
    given: cursors.length === 1 ? (cursors[0] as string) : '',
    types: readTypes(query.get('types')),
    tellUnavailable: readOnUnavailable(query.get('on_unavailable')),
  };
}

/** One cursor of all the streams together, or one for each. */
function readMultiStart(
  edge: EdgeServices,
  cursors: readonly string[],
  count: number,
): MultiSubscribe['start'] {
  const [given] = cursors;
  if (given === undefined) return null;
  if (cursors.length > 1 && cursors.length !== count) {
    throw new RequestError('invalid_query', 'cursor: expected one, or one for each stream');
  }
  if (cursors.length > 1 || (count === 1 && parseCursor(given) !== null)) {
    return cursors.map((cursor) => readStart('', cursor, edge.counters));
  }
  if (given === 'earliest' || given === 'latest') return given;
  const cursor = parseMultiCursor(given, count);
  if (cursor === null) throw refused('malformed', given, null, edge.counters);
  return cursor;
}

/** All streams; made where they are not there, as for one of them. */
function findAll(exchange: Exchange, request: MultiSubscribe): Promise<EdgeStream[]> {
  const { edge } = exchange;
  const { names, start, given, tellUnavailable } = request;
  return Promise.all(
    names.map(async (name, index) => {
      const known = edge.broker.streams.known(name);
      if (known !== null) return known;
      const own = Array.isArray(start) ? (start[index] as Start) : null;
      const resumes = isMultiCursor(start) || isCursor(own);
      const stream = await edge.broker.streams.resolve(name, !resumes || tellUnavailable);
      if (stream !== null) return stream;
      if (!resumes || tellUnavailable) throw new RequestError('stream_not_found', `there is no ${name}`);
      const cursor = isCursor(own) ? formatCursor(own.epoch, own.seq) : given;
      throw refused('epoch_changed', cursor, null, edge.counters);
    }),
  );
}

/** @returns false when one of the handles is old. All of it in one turn (I8). */
function tryEnter(exchange: Exchange, request: MultiSubscribe, streams: readonly EdgeStream[]): boolean {
  const { broker } = exchange.edge;
  for (const stream of streams) broker.expectReader(stream);
  try {
    const positions = streams.map((stream) => broker.positions(stream));
    if (positions.includes(null)) return false;
    enter(exchange, request, streams, positions as StreamPositions[]);
    return true;
  } finally {
    for (const stream of streams) broker.releaseReader(stream);
  }
}

function enter(
  exchange: Exchange,
  request: MultiSubscribe,
  streams: readonly EdgeStream[],
  positions: readonly StreamPositions[],
): void {
  const { edge } = exchange;
  const beginning = begin(exchange, request, streams, positions);
  const { begun, refusals } = beginning;
  if (refusals.length === 0 && begun.every(({ at, cursor }) => at.closed && cursor === at.committed)) {
    exchange.answer(204, { 'Cache-Control': 'no-store' }, (res) => res.endWithoutBody());
    return;
  }
  for (const { at, cursor } of begun) edge.limits.admitSubscriber(exchange, at, cursor);
  noteResumes(exchange, begun, refusals, hasPositions(request.start));
  exchange.answer(200, SUBSCRIPTION_HEADERS, (res) => open(exchange, request, beginning, res));
}

/** Where each stream begins. */
interface Beginning {
  readonly begun: readonly Begun[];
  readonly refusals: readonly RefusedStream[];
  readonly position: MultiCursor;
}

/** @throws {RequestError} `resume_unavailable`; `invalid_query` where the positions have no place in an id */
function begin(
  exchange: Exchange,
  { start, given, tellUnavailable }: MultiSubscribe,
  streams: readonly EdgeStream[],
  positions: readonly StreamPositions[],
): Beginning {
  const { edge } = exchange;
  const fingerprint = fingerprintOf(streams);
  const isSame = !isMultiCursor(start) || start.fingerprint === fingerprint;
  const begun = streams.map((stream, index) => {
    const at = positions[index] as StreamPositions;
    return beginOne(edge, stream, at, () => {
      // Which of them is another does not stand in the cursor, so none is resumed.
      if (!isSame) throw refused('epoch_changed', given, at, edge.counters);
      return startOf(start, index, stream.epoch);
    });
  });
  const refusals = refusedOf(begun);
  if (refusals.length > 0 && !tellUnavailable) {
    exchange.stream = (refusals[0] as RefusedStream).name;
    throw refusalOf(given, refusals);
  }
  const heads = begun.map(({ at }) => at.committed);
  if (formatMultiCursor(fingerprint, heads) === null) {
    throw new RequestError('invalid_query', 'stream: the positions of so many do not fit an id; name fewer');
  }
  return { begun, refusals, position: { fingerprint, seqs: begun.map(({ cursor }) => cursor) } };
}

function open(
  { edge, principal, address }: Exchange,
  request: MultiSubscribe,
  { begun, refusals, position }: Beginning,
  res: HttpResponse,
): void {
  const connection = new MultiConnection(res, edge, new PositionsInId(position));
  const id = formatMultiCursor(position.fingerprint, position.seqs) as string;
  const all = { ...request, principal, address };
  const subscriptions = begun.map(({ stream, cursor }, index) =>
    subscribeOne(edge, connection, all, { stream, cursor, index }),
  );
  // What is refused is told before any event, and with it where its stream goes on (I2).
  const told = refusals.map(({ name, refusal }) => refusedFrame(name, refusal.problem(), id));
  connection.begin(retryFrame(retryMs(edge)) + primingFrame(id) + told.join(''));
  for (const subscription of subscriptions) {
    if (connection.isOpen) edge.broker.start(subscription, connection.taken);
  }
}

function startOf(start: MultiSubscribe['start'], index: number, epoch: string): Start {
  if (isMultiCursor(start)) return { epoch, seq: start.seqs[index] as number };
  return hasPositions(start) ? (start[index] as Start) : start;
}

function hasPositions(start: MultiSubscribe['start']): start is MultiCursor | readonly Start[] {
  return typeof start === 'object' && start !== null;
}

function isMultiCursor(start: MultiSubscribe['start']): start is MultiCursor {
  return hasPositions(start) && 'fingerprint' in start;
}
