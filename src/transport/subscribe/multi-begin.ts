/**
 * How a connection over several streams begins (contract 4.10, 4.11): each stream by the rules of one; then all are refused,
 * or all are subscribed to.
 */

import type { EdgeStream } from '../../broker/edge-stream.js';
import { type EventTypes, type Rendering, typesKey } from '../../broker/rendering.js';
import type { Subscription } from '../../broker/subscription.js';
import type { Start } from '../../core/resume.js';
import { RequestError } from '../../errors.js';
import type { StreamPositions } from '../../ring/lifecycle.js';
import { encodeMultiFrames } from '../../wire/multi-frame.js';
import type { Caller } from '../admission/limits.js';
import type { EdgeServices } from '../edge-services.js';
import type { Exchange } from '../http/exchange.js';
import { type MultiConnection, MultiSink } from './multi-connection.js';
import { beginAfter } from './resume-request.js';

/** Where one of the streams begins, and why it cannot begin where it should. */
export interface Begun {
  readonly stream: EdgeStream;
  readonly at: StreamPositions;
  readonly cursor: number;
  readonly refusal: RequestError | null;
}

/** One of the streams that is refused. */
export interface RefusedStream {
  readonly name: string;
  readonly refusal: RequestError;
}

/** One stream by its own rules; if it is refused it would go on from its head. @param start called for it */
export function beginOne(
  edge: EdgeServices,
  stream: EdgeStream,
  at: StreamPositions,
  start: () => Start,
): Begun {
  try {
    return { stream, at, cursor: beginAfter(start(), at, edge.counters), refusal: null };
  } catch (refusal) {
    if (!(refusal instanceof RequestError)) throw refusal;
    return { stream, at, cursor: at.committed, refusal };
  }
}

export function refusedOf(begun: readonly Begun[]): RefusedStream[] {
  return begun.flatMap(({ stream, refusal }) => (refusal === null ? [] : [{ name: stream.name, refusal }]));
}

/** One problem for all that are refused, each with its own JSON. @param given the cursor, empty where each had its own */
export function refusalOf(given: string, refused: readonly RefusedStream[]): RequestError {
  const first = refused[0]?.refusal.extra;
  return new RequestError('resume_unavailable', undefined, {
    reason: first?.reason,
    cursor: given === '' ? first?.cursor : given,
    streams: refused.map(({ name, refusal }) => ({ stream: name, ...refusal.extra })),
  });
}

/** Each of the streams is resumed for itself, or refused in-band. */
export function noteResumes(
  { edge, principal }: Exchange,
  begun: readonly Begun[],
  refused: readonly RefusedStream[],
  isResume: boolean,
): void {
  for (const { name, refusal } of refused) edge.refusals.note({ principal, stream: name }, refusal);
  if (!isResume) return;
  for (const { stream, at, cursor, refusal } of begun) {
    if (refusal !== null) continue;
    edge.activity.resumed({ principal, stream: stream.name }, { epoch: stream.epoch, seq: cursor }, at);
  }
}

/** What is asked of all the streams of a connection, and who asks. */
export interface MultiRequest extends Caller {
  readonly types: EventTypes | null;
  readonly tellUnavailable: boolean;
}

/** Registers one of the streams. After `expectReader`, in the same turn; then it is started. */
export function subscribeOne(
  edge: EdgeServices,
  connection: MultiConnection,
  request: MultiRequest,
  { stream, cursor, index }: { stream: EdgeStream; cursor: number; index: number },
): Subscription {
  const { types, tellUnavailable } = request;
  const sink = new MultiSink(connection, stream.name, index);
  const rendering = multiRendering(stream.name, types);
  const subscription = edge.broker.subscribe(stream, { sink, cursor, rendering, tellUnavailable });
  sink.attach(subscription);
  edge.sessions.opened(subscription, request);
  return subscription;
}

function multiRendering(name: string, types: EventTypes | null): Rendering {
  return {
    key: types === null ? 'multi' : `multi:${typesKey(types)}`,
    filters: types !== null,
    render: (frames, epoch) => encodeMultiFrames(frames, { name, epoch }, types),
  };
}
