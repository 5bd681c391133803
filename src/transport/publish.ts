/**
 * POST /v1/streams/{stream} (contract 3).
 *
 * Hot path: a body in one piece to a stream that this edge knows is decoded, framed, appended and answered
 * within the request's own handler.
 */

import { isUtf8 } from 'node:buffer';
import type { EdgeStream } from '../broker/edge-stream.js';
import { formatCursor, parseCursor } from '../core/cursor.js';
import { isStreamName } from '../core/stream-name.js';
import { RequestError } from '../errors.js';
import * as append from '../ring/append.js';
import type { ProducerClaim } from '../ring/claim-judge.js';
import { Counter } from '../ring/counters.js';
import { LOG_HEALTHY } from '../ring/log-status.js';
import { decodePublish } from '../wire/publish-body.js';
import { appendRefusal, headMismatch, logRefusal } from './append-refusal.js';
import { answerPublished, answerWhenCommitted } from './commit-answer.js';
import type { EdgeServices } from './edge-services.js';
import type { Exchange } from './exchange.js';
import { readClaim } from './producer-claim.js';
import type { RequestView } from './request-view.js';

/** Refused as an event type. */
const NOT_UTF8 = '\0';

/** How often a stream may be deleted under a publish before that is an error. */
const TRIES_MAX = 3;

interface Publish {
  readonly name: string;
  readonly contentType: string;
  readonly eventType: string | null;
  /** The raw `Gapless-If-Head`; empty: the publisher does not care. */
  readonly ifHead: string;
  /** Whose it is, where it is to be appended exactly once. */
  readonly claim: ProducerClaim | null;
}

/** @throws {RequestError} what is wrong before the body has come; the connection is of no use then. */
export function publish(exchange: Exchange, name: string, req: RequestView): void {
  const { edge } = exchange;
  refuseUnread(edge, req);
  const request = readRequest(name, req);
  exchange.watch();
  exchange.readBody(edge.config.bodyBytesMax, (body) => {
    try {
      if (body === null) throw bodyTooLarge(edge);
      receive(exchange, request, body);
    } catch (error) {
      // The rest of a body that is too large is not waited for.
      exchange.fail(error, { close: body === null });
    }
  });
}

/** A body that is announced as too large is refused before it has come. */
function refuseUnread(edge: EdgeServices, req: RequestView): void {
  if (Number(req.getHeader('content-length')) > edge.config.bodyBytesMax) throw bodyTooLarge(edge);
}

/** What is needed of the headers, for they are gone when the body comes. */
function readRequest(name: string, req: RequestView): Publish {
  return {
    name,
    contentType: req.getHeader('content-type'),
    eventType: readEventType(req.getHeader('gapless-event')),
    ifHead: req.getHeader('gapless-if-head'),
    claim: readClaim(req),
  };
}

/** The library reads header bytes as Latin-1; they are UTF-8 (contract 3.2). What is not stays as it is and is refused. */
function readEventType(header: string): string | null {
  if (header === '') return null;
  if (/^[\x20-\x7e]*$/.test(header)) return header;
  const bytes = Buffer.from(header, 'latin1');
  return isUtf8(bytes) ? bytes.toString('utf8') : NOT_UTF8;
}

function receive(exchange: Exchange, request: Publish, body: Uint8Array): void {
  const { edge } = exchange;
  if (!isStreamName(request.name)) throw new RequestError('invalid_stream_name');
  decode(edge, request, body);
  edge.limits.admitPublish(exchange, edge.batch.count, body.length);
  const stream = edge.broker.streams.known(request.name);
  if (stream !== null && tryAppend(exchange, request, stream, body.length)) return;
  // The library takes the body back when this returns.
  const kept = body.slice();
  void exchange.run(() => appendUnknown(exchange, request, kept));
}

/** The first publish that this edge sees to a stream: the directory knows where it is, or makes it. */
async function appendUnknown(exchange: Exchange, request: Publish, body: Uint8Array): Promise<void> {
  const { edge } = exchange;
  for (let attempt = 0; attempt < TRIES_MAX; attempt++) {
    const stream = await edge.broker.streams.resolve(request.name, request.ifHead === '');
    if (exchange.done) return;
    if (stream === null)
      throw request.ifHead === '' ? new RequestError('stream_not_found') : headMismatch(null);
    decode(edge, request, body);
    if (tryAppend(exchange, request, stream, body.length)) return;
  }
  throw new RequestError('stream_not_found', 'the stream is being deleted over and over');
}

function decode(edge: EdgeServices, request: Publish, body: Uint8Array): void {
  decodePublish(request.contentType, body, request.eventType, edge.config, edge.batch);
}

/** Appends what `edge.batch` holds. @returns false when the handle is old. */
function tryAppend(exchange: Exchange, request: Publish, stream: EdgeStream, bodyBytes: number): boolean {
  const { broker, batch, counters } = exchange.edge;
  const ifHeadSeq = request.ifHead === '' ? append.ANY_HEAD : expectedHead(exchange, request, stream);
  if (broker.logFault !== LOG_HEALTHY) throw logRefusal(exchange.edge);
  // Before the append, so that its commit is announced here (I4).
  if (broker.isDurable) broker.expectReader(stream);
  const outcome = broker.append(stream, batch, { ifHeadSeq, claim: request.claim });
  const isDuplicate = outcome === append.APPEND_DUPLICATE;
  if (outcome !== append.APPENDED && !isDuplicate) {
    broker.releaseReader(stream);
    if (outcome === append.APPEND_GONE) return false;
    throw appendRefusal(exchange.edge, stream, outcome);
  }
  if (isDuplicate) {
    counters.add(Counter.duplicates, 1);
  } else {
    counters.add(Counter.publishes, 1);
    counters.add(Counter.publishedEvents, batch.count);
    counters.add(Counter.publishedBytes, bodyBytes);
  }
  const placed = { first: broker.appended.firstSeq, last: broker.appended.lastSeq, isDuplicate };
  if (broker.isDurable) answerWhenCommitted(exchange, stream, placed);
  else answerPublished(exchange, stream.epoch, placed);
  return true;
}

/** The seq that `Gapless-If-Head` names in this stream (contract 3.5). */
function expectedHead(exchange: Exchange, request: Publish, stream: EdgeStream): number {
  const cursor = parseCursor(request.ifHead);
  if (cursor === null) throw new RequestError('malformed', 'Gapless-If-Head is not a cursor');
  if (cursor.epoch === stream.epoch) return cursor.seq;
  const positions = exchange.edge.broker.positions(stream);
  throw headMismatch(positions === null ? null : formatCursor(stream.epoch, positions.head));
}

function bodyTooLarge({ config }: EdgeServices): RequestError {
  return new RequestError('body_too_large', `expected at most ${config.bodyBytesMax} bytes`);
}
