/**
 * How a subscriber gets into a stream, whatever carries it: find the stream, look at it, classify and register, the
 * last three in one turn (I8).
 */

import type { EdgeStream } from '../../broker/edge-stream.js';
import { formatCursor } from '../../core/cursor.js';
import type { Start } from '../../core/resume.js';
import { RequestError } from '../../errors.js';
import type { StreamPositions } from '../../ring/lifecycle.js';
import type { EdgeServices } from '../edge-services.js';
import { isCursor, refused } from './resume-request.js';

/** How often a stream may be deleted under a subscriber before that is an error. */
const TRIES_MAX = 3;

/** Somebody who is to get in. */
export interface Entrant {
  readonly name: string;
  readonly start: Start;
  /** Whether even a cursor creates a stream that is not there, so that the refusal can be told in-band (contract 4.5). */
  readonly alwaysCreates: boolean;
  readonly isGone: boolean;
  /**
   * Classifies and registers. Every append from these positions on is announced.
   * @throws {RequestError} when it is refused
   */
  enter(stream: EdgeStream, at: StreamPositions): void;
}

/** @throws {RequestError} what `enter` throws, and why there is no such stream. Nothing when the peer goes away. */
export function enterStream(edge: EdgeServices, entrant: Entrant): Promise<void> | void {
  const { name, start } = entrant;
  const asked = askIfBehind(edge, name, start);
  if (asked !== null) {
    return asked.then(() => (entrant.isGone ? undefined : enterUnknown(edge, entrant, true)));
  }
  const stream = edge.broker.streams.known(name);
  if (stream !== null && tryEnter(edge, entrant, stream)) return;
  return enterUnknown(edge, entrant, false);
}

/**
 * A cursor may be one that another broker gave, of an event, or a stream, that has not come here yet: where brokers share
 * a log, nobody is refused for that before the log was asked (I2).
 *
 * @returns resolves when it was; null: the cursor is of what is here.
 */
export function askIfBehind(edge: EdgeServices, name: string, start: Start): Promise<void> | null {
  const { broker, coordinator, sharesLog } = edge;
  if (!sharesLog || !isCursor(start)) return null;
  const stream = broker.streams.known(name);
  const at = stream === null ? null : broker.positions(stream);
  if (at === null || (at.epoch === start.epoch && at.committed >= start.seq)) return null;
  return coordinator.refresh(name, start);
}

/** The first request that this edge sees for a stream, or one for which the log was asked. */
async function enterUnknown(edge: EdgeServices, entrant: Entrant, isFresh: boolean): Promise<void> {
  let wasAsked = isFresh;
  for (let attempt = 0; attempt < TRIES_MAX; attempt++) {
    const stream = await findStream(edge, entrant);
    if (stream === null) return;
    const asked = wasAsked ? null : askIfBehind(edge, entrant.name, entrant.start);
    if (asked !== null) {
      wasAsked = true;
      await asked;
      if (entrant.isGone) return;
      continue;
    }
    if (tryEnter(edge, entrant, stream)) return;
  }
  throw new RequestError('stream_not_found', 'the stream is being deleted over and over');
}

/**
 * Asks the directory, which knows where the stream is, or makes it.
 * @returns null when the peer has gone away.
 * @throws {RequestError} why there is no such stream
 */
export async function findStream(edge: EdgeServices, entrant: Entrant): Promise<EdgeStream | null> {
  // Who resumes in a stream that is no more is refused, and that alone creates nothing (contract 4.4).
  const create = !isCursor(entrant.start) || entrant.alwaysCreates;
  const stream = await edge.broker.streams.resolve(entrant.name, create);
  if (entrant.isGone) return null;
  if (stream === null) throw missing(edge, entrant);
  return stream;
}

function missing({ counters }: EdgeServices, { start, alwaysCreates }: Entrant): RequestError {
  if (!isCursor(start) || alwaysCreates) return new RequestError('stream_not_found');
  return refused('epoch_changed', formatCursor(start.epoch, start.seq), null, counters);
}

/**
 * Interest first, then positions, then registration, all in this turn, so that no append falls between (I8).
 * @returns false when the handle is old.
 */
function tryEnter({ broker }: EdgeServices, entrant: Entrant, stream: EdgeStream): boolean {
  broker.expectReader(stream);
  try {
    const at = broker.positions(stream);
    if (at === null) return false;
    entrant.enter(stream, at);
    return true;
  } finally {
    broker.releaseReader(stream);
  }
}
