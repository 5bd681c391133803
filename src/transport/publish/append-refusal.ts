/**
 * What a publisher is told whose events were not appended (contract 3.4 to 3.6). Counts the reasons that operators ask for.
 */

import type { EdgeStream } from '../../broker/edge-stream.js';
import { logRefusal } from '../../broker/log-refusal.js';
import { formatCursor } from '../../core/cursor.js';
import { RequestError } from '../../errors.js';
import * as append from '../../ring/append.js';
import { Counter } from '../../ring/counters.js';
import type { EdgeServices } from '../edge-services.js';

const HELD = 'named subscribers have yet to acknowledge what would have to go';

/** @param outcome what the append said, one of those that refuse. */
export function appendRefusal(edge: EdgeServices, stream: EdgeStream, outcome: number): RequestError {
  const { broker, counters, batch } = edge;
  switch (outcome) {
    case append.APPEND_CLOSED:
      return new RequestError('stream_closed', undefined, {
        cursor: formatCursor(stream.epoch, broker.appended.lastSeq),
      });
    case append.APPEND_HEAD_MISMATCH:
      return headMismatch(formatCursor(stream.epoch, broker.appended.lastSeq));
    case append.APPEND_UNCOMMITTED:
      counters.add(Counter.refusedUncommitted, 1);
      return new RequestError('backpressure', undefined, {}, { 'Retry-After': '1' });
    case append.APPEND_HELD:
      counters.add(Counter.refusedHeld, 1);
      return heldRefusal();
    case append.APPEND_NO_MEMORY:
      counters.add(Counter.refusedMemory, 1);
      return new RequestError('insufficient_memory');
    case append.APPEND_TOO_MANY_PRODUCERS:
      counters.add(Counter.refusedProducers, 1);
      return new RequestError('too_many_producers');
    case append.APPEND_PRODUCER_GAP:
      counters.add(Counter.producerGaps, 1);
      return new RequestError('producer_gap', undefined, { expected: broker.appended.expectedSeq });
    case append.APPEND_FENCED:
      counters.add(Counter.producersFenced, 1);
      return new RequestError('producer_fenced', undefined, { producerEpoch: broker.appended.newestEpoch });
    case append.APPEND_FORGOTTEN:
      counters.add(Counter.publishesForgotten, 1);
      return new RequestError('publish_forgotten');
    default:
      return new RequestError(batch.count === 1 ? 'event_too_large' : 'batch_too_large');
  }
}

/** Named subscribers hold what would have to go (contract 3.6). */
export function heldRefusal(): RequestError {
  return new RequestError('backpressure', HELD, {}, { 'Retry-After': '1' });
}

export function isHeldRefusal({ detail }: RequestError): boolean {
  return detail === HELD;
}

/** Nothing is appended that a log which cannot commit now would have to remember. */
export function countedLogRefusal({ broker, counters }: EdgeServices): RequestError {
  counters.add(Counter.refusedLog, 1);
  return logRefusal(broker.logFault);
}

/** @param head its cursor; null where there is no stream. */
export function headMismatch(head: string | null): RequestError {
  const headers: Readonly<Record<string, string>> = head === null ? {} : { 'Gapless-Cursor': head };
  return new RequestError('head_mismatch', undefined, { head }, headers);
}
