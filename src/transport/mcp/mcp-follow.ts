/**
 * A client of MCP gets into a stream of its session: where it begins, what it is sent before the first message, and how
 * it ends (contract 12.3 to 12.5).
 */

import type { EdgeStream } from '../../broker/edge-stream.js';
import type { Ending } from '../../broker/ending.js';
import { formatCursor } from '../../core/cursor.js';
import { lowestReadable } from '../../core/resume.js';
import { RequestError } from '../../errors.js';
import { eventId, settledId } from '../../mcp/event-id.js';
import { errorText, HISTORY_GONE } from '../../mcp/json-rpc.js';
import type { FollowStream, LostStream, ReaderOf, WholeStream } from '../../mcp/messages.js';
import { Counter } from '../../ring/counters.js';
import type { StreamPositions } from '../../ring/lifecycle.js';
import type { EdgeServices } from '../edge-services.js';
import { EVENT_STREAM_HEADERS } from '../http/event-stream.js';
import type { Exchange, Headers } from '../http/exchange.js';
import { retryMs } from '../http/retry.js';
import { beginAfter, refused } from '../subscribe/resume-request.js';
import { SseSink } from '../subscribe/sse-sink.js';
import { mcpRendering } from './mcp-rendering.js';

export type Followed = 'reads' | 'refused' | 'over';

/** Marks of connections: 36^6 of them are enough that no client sees one twice in a row. */
const MARKS = 36 ** 6;

/**
 * Interest first, then positions, then registration, all in this turn, so that no message falls between (I8).
 * @returns whether the connection reads the stream now, was told that what comes next is gone, or has all.
 */
export function followStream(exchange: Exchange, followed: FollowStream, reader: number): Followed {
  if (exchange.done) return 'over';
  const { broker } = exchange.edge;
  const stream = broker.streams.adopt(followed.stream);
  broker.expectReader(stream);
  try {
    const at = broker.positions(stream);
    if (at !== null) return enter(exchange, { ...followed, stream, at, reader });
    const cursor = formatCursor(followed.stream.epoch, followed.afterSeq ?? 0);
    tellLost(exchange, { ...followed, verdict: 'lost', cursor });
    return 'refused';
  } finally {
    broker.releaseReader(stream);
  }
}

/** A stream that is all there goes out in one piece, as it would be read. */
export function sendWhole(exchange: Exchange, whole: WholeStream): void {
  if (exchange.done) return;
  const { edge } = exchange;
  const { prefix, messages } = whole;
  const frames = messages.map((message, index) =>
    messageFrame(prefix === null ? null : eventId(prefix, index + 1), message),
  );
  const body =
    firstFrames(edge, { ...whole, endpoint: null, notices: null }, { cursor: 0, missed: false }) +
    frames.join('');
  edge.counters.add(Counter.joinedLive, 1);
  edge.counters.add(Counter.deliveries, messages.length);
  edge.counters.add(Counter.deliveredBytes, Buffer.byteLength(body));
  exchange.send(200, eventStreamHeaders(whole.session), body);
}

/** A client that comes back to a stream that is gone is told so in a way that ends its calls, and asks no more. */
export function tellLost(exchange: Exchange, lost: LostStream): void {
  const { edge } = exchange;
  edge.refusals.note(exchange, refused('epoch_changed', lost.cursor, null, edge.counters));
  sendLost(exchange, lost);
}

function sendLost(exchange: Exchange, lost: ReaderOf): void {
  exchange.send(200, eventStreamHeaders(lost.session), lostFrames(lost));
}

type Beginning = Pick<FollowStream, 'prefix' | 'primes' | 'endpoint' | 'notices'>;

interface Entering extends Omit<FollowStream, 'stream'> {
  readonly stream: EdgeStream;
  readonly at: StreamPositions;
  readonly reader: number;
}

function enter(exchange: Exchange, entering: Entering): Followed {
  const { stream, at, session } = entering;
  const { edge } = exchange;
  const afterSeq = startOf(exchange, entering);
  if (afterSeq === null && entering.notices === null) {
    sendLost(exchange, entering);
    return 'refused';
  }
  const cursor = afterSeq ?? at.committed;
  if (at.closed && cursor === at.committed) {
    const headers = { Allow: 'POST, DELETE', 'Cache-Control': 'no-store' };
    exchange.answer(405, headers, (res) => res.end());
    return 'over';
  }
  edge.limits.admitSubscriber(exchange, at, cursor);
  exchange.answer(200, eventStreamHeaders(session), (res) => {
    const sink = new SseSink(res, edge, (ending) => lastFrames(entering, ending));
    const rendering = mcpRendering(entering.prefix);
    const subscription = edge.broker.subscribe(stream, { sink, cursor, rendering, tellUnavailable: true });
    sink.attach(subscription);
    edge.sessions.opened(subscription, exchange);
    edge.mcp?.opened(entering.reader, subscription);
    const missed = afterSeq === null;
    edge.broker.start(subscription, sink.write(firstFrames(edge, entering, { cursor, missed })));
    // A quick answer is whole by now, and its end goes out with it.
    if (at.closed && subscription.state === 'ready' && subscription.cursor === at.committed) {
      edge.broker.unsubscribe(subscription);
      sink.end({ kind: 'closed', cursor: formatCursor(stream.epoch, subscription.cursor) });
    }
  });
  return 'reads';
}

/** The seq to begin after (I2); null: what comes after it is gone. */
function startOf(exchange: Exchange, { afterSeq: seq, isNew, at }: Entering): number | null {
  const { edge } = exchange;
  const wholeStream = isNew && lowestReadable(at) === 1;
  if (wholeStream) edge.counters.add(Counter.joinedLive, 1);
  if (wholeStream || seq === null) return seq;
  try {
    const start = { epoch: at.epoch, seq };
    const afterSeq = beginAfter(start, at, edge.counters);
    edge.activity.resumed(exchange, start, at);
    return afterSeq;
  } catch (refusal) {
    if (!(refusal instanceof RequestError)) throw refusal;
    edge.refusals.note(exchange, refusal);
    return null;
  }
}

/**
 * The head of an answer is not enough: clients wait for the first bytes. Whoever knows ids without a message gets a new
 * one on each connection, and a new client of HTTP+SSE its endpoint; the others a comment.
 */
function firstFrames(
  edge: EdgeServices,
  { prefix, primes, endpoint, notices }: Beginning,
  { cursor, missed }: { cursor: number; missed: boolean },
): string {
  if (prefix === null) return ':\n\n';
  const position = (): string => eventId(prefix, cursor, mark(edge));
  if (endpoint !== null) return endpointFrame(position(), retryMs(edge), endpoint);
  const told = (missed ? (notices ?? []) : []).map((notice) => messageFrame(position(), notice)).join('');
  return (primes ? primingFrame(position(), retryMs(edge)) : ':\n\n') + told;
}

function lastFrames({ prefix, primes, calls, farewells }: Entering, ending: Ending): string {
  switch (ending.kind) {
    case 'deleted':
    case 'unavailable':
      // The session's own stream goes on elsewhere; a call does not.
      return calls.length === 0 ? '' : lostFrames({ prefix, calls });
    case 'drained':
      if (farewells.length > 0) return settlingFrames(prefix, farewells);
      return primes ? `retry: ${ending.retryMs}\n\n` : '';
    default:
      return '';
  }
}

/** Each call is answered with an error of its own id: nothing else ends it in today's clients. */
function lostFrames({ prefix, calls }: Pick<ReaderOf, 'prefix' | 'calls'>): string {
  const error = {
    code: HISTORY_GONE,
    message: 'What came after the last event seen is not kept any more; the call may have been carried out',
    data: { reason: 'history_gone' },
  };
  return settlingFrames(
    prefix,
    calls.map((call) => errorText(call, error)),
  );
}

/** Answers that the server did not give: nothing more comes after them. */
function settlingFrames(prefix: string | null, answers: readonly string[]): string {
  const id = prefix === null ? null : settledId(prefix);
  return answers.map((answer) => messageFrame(id, answer)).join('');
}

/** An id without a message, and when to come back. */
function primingFrame(id: string, ms: number): string {
  return `id: ${id}\nretry: ${ms}\ndata: \n\n`;
}

/** As MCP 2024-11-05 has it; the rest is for clients that come back. */
function endpointFrame(id: string, ms: number, endpoint: string): string {
  return `id: ${id}\nretry: ${ms}\nevent: endpoint\ndata: ${endpoint}\n\n`;
}

function messageFrame(id: string | null, message: string): string {
  const idLine = id === null ? '' : `id: ${id}\n`;
  return `${idLine}event: message\ndata: ${message}\n\n`;
}

function mark({ random }: EdgeServices): string {
  return Math.floor(random() * MARKS).toString(36);
}

function eventStreamHeaders(session: string): Headers {
  return session === '' ? EVENT_STREAM_HEADERS : { ...EVENT_STREAM_HEADERS, 'Mcp-Session-Id': session };
}
