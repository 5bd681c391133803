/**
 * A publish where brokers share the log (contract 3): this edge has framed its events, and the coordinator has them
 * appended. They come into the rings, here and elsewhere, when the log has them (I4).
 */

import type { Publish } from '../../broker/replicated-publish.js';
import { type Cursor, parseCursor } from '../../core/cursor.js';
import type { EventParts } from '../../core/event-parts.js';
import { type ErrorCode, RequestError } from '../../errors.js';
import type { ProducerClaim } from '../../ring/claim-judge.js';
import { Counter } from '../../ring/counters.js';
import { LOG_HEALTHY } from '../../ring/log-status.js';
import type { EdgeServices } from '../edge-services.js';
import { countedLogRefusal, isHeldRefusal } from './append-refusal.js';
import type { Publishing } from './publishing.js';

const REFUSED_COUNTERS: { readonly [Code in ErrorCode]?: number } = {
  backpressure: Counter.refusedUncommitted,
  insufficient_memory: Counter.refusedMemory,
  log_full: Counter.refusedLog,
  log_unavailable: Counter.refusedLog,
  producer_fenced: Counter.producersFenced,
  producer_gap: Counter.producerGaps,
  publish_forgotten: Counter.publishesForgotten,
  too_many_producers: Counter.refusedProducers,
};

/**
 * Appends what `edge.batch` holds, which is taken before anything is waited for, and has it answered.
 *
 * @param creates whether the stream is made where it is not there.
 */
export async function publishReplicated(
  publishing: Publishing,
  { creates }: { creates: boolean },
): Promise<void> {
  const { edge, name, bodyBytes } = publishing;
  const { broker, coordinator, counters } = edge;
  edge.sharedPublishes++;
  let isGone = false;
  publishing.onGone(() => {
    isGone = true;
  });
  try {
    if (broker.logFault !== LOG_HEALTHY) return publishing.fail(countedLogRefusal(edge));
    const parts = copyParts(edge);
    const publish: Publish = {
      parts,
      claim: readClaim(publishing.claim),
      creates,
      ifHead: readIfHead(publishing.ifHead),
    };
    const placed = await coordinator.publish(name, publish);
    if (placed.isDuplicate) {
      counters.add(Counter.duplicates, 1);
    } else {
      counters.add(Counter.publishes, 1);
      counters.add(Counter.publishedEvents, parts.ends.length);
      counters.add(Counter.publishedBytes, bodyBytes);
    }
    if (!isGone) publishing.published(placed.epoch, placed);
  } catch (error) {
    const counter = error instanceof RequestError ? counterOf(error) : undefined;
    if (counter !== undefined) counters.add(counter, 1);
    if (!isGone) publishing.fail(error);
  } finally {
    edge.sharedPublishes--;
  }
}

function counterOf(error: RequestError): number | undefined {
  return isHeldRefusal(error) ? Counter.refusedHeld : REFUSED_COUNTERS[error.code];
}

function copyParts({ batch }: EdgeServices): EventParts {
  return { bytes: batch.bytes.slice(0, batch.size), ends: batch.ends.slice(0, batch.count) };
}

function readClaim(claim: ProducerClaim | null): Publish['claim'] {
  if (claim === null) return null;
  const { kind, digest, epoch, seq } = claim;
  const hex = Buffer.from(digest.buffer, digest.byteOffset, digest.byteLength).toString('hex');
  return { kind, digest: hex, epoch, seq };
}

function readIfHead(text: string): Cursor | null {
  if (text === '') return null;
  const cursor = parseCursor(text);
  if (cursor === null) throw new RequestError('malformed', 'the head to append at is not a cursor');
  return cursor;
}
