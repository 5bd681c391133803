/**
 * Appends a publish whose events are framed, and has it answered: at once in memory, and with a durable log after the
 * commit.
 *
 * Hot path: what goes to a stream that this edge knows is framed, appended and answered without a pause.
 */

import type { EdgeStream } from '../../broker/edge-stream.js';
import { formatCursor, parseCursor } from '../../core/cursor.js';
import { RequestError } from '../../errors.js';
import * as append from '../../ring/append.js';
import { Counter } from '../../ring/counters.js';
import { LOG_HEALTHY } from '../../ring/log-status.js';
import { appendRefusal, countedLogRefusal, headMismatch } from './append-refusal.js';
import { answerWhenCommitted } from './commit-answer.js';
import type { Publishing } from './publishing.js';

/** Appends what `edge.batch` holds. @returns false when the handle is old. @throws {RequestError} */
export function tryAppend(publishing: Publishing, stream: EdgeStream): boolean {
  const { edge, claim } = publishing;
  const { broker, batch, counters } = edge;
  const ifHeadSeq = publishing.ifHead === '' ? append.ANY_HEAD : expectedHead(publishing, stream);
  if (broker.logFault !== LOG_HEALTHY) throw countedLogRefusal(edge);
  // Before the append, so that its commit is announced here (I4).
  if (broker.isDurable) broker.expectReader(stream);
  const outcome = broker.append(stream, batch, { ifHeadSeq, claim });
  const isDuplicate = outcome === append.APPEND_DUPLICATE;
  if (outcome !== append.APPENDED && !isDuplicate) {
    broker.releaseReader(stream);
    if (outcome === append.APPEND_GONE) return false;
    throw appendRefusal(edge, stream, outcome);
  }
  if (isDuplicate) {
    counters.add(Counter.duplicates, 1);
  } else {
    counters.add(Counter.publishes, 1);
    counters.add(Counter.publishedEvents, batch.count);
    counters.add(Counter.publishedBytes, publishing.bodyBytes);
  }
  const placed = { first: broker.appended.firstSeq, last: broker.appended.lastSeq, isDuplicate };
  if (broker.isDurable) answerWhenCommitted(publishing, stream, placed);
  else publishing.published(stream.epoch, placed);
  return true;
}

/** The seq that `ifHead` names in this stream (contract 3.5). */
function expectedHead({ edge, ifHead }: Publishing, stream: EdgeStream): number {
  const cursor = parseCursor(ifHead);
  if (cursor === null) throw new RequestError('malformed', 'the head to append at is not a cursor');
  if (cursor.epoch === stream.epoch) return cursor.seq;
  const positions = edge.broker.positions(stream);
  throw headMismatch(positions === null ? null : formatCursor(stream.epoch, positions.head));
}
