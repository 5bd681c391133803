/**
 * What is remembered of one producer, or of one key (contract 3.4): the same bytes in shared memory and in the log.
 *
 * PRODUCER RECORD, little-endian
 *   offset size type  field
 *        0   16 u8[]  digest    of the id or the key; the id itself is not kept
 *       16    8 f64   epoch     the producer's own; 0 for a key
 *       24    8 f64   seq       of its newest publish; 0 for a key
 *       32    8 f64   usedAtMs  Unix time of its newest publish
 *       40 16*w f64[] places    first and last seq in the stream of its newest w publishes; of publish s at s % w
 */

import { assert } from '../assert.js';
import { PRODUCER_WINDOW } from './producer.js';

/** What a record is about. A key is a producer that publishes once. */
export const PRODUCER = 0;
export const KEY = 1;
export type RecordKind = typeof PRODUCER | typeof KEY;
export const RECORD_KINDS: readonly RecordKind[] = [PRODUCER, KEY];

export const DIGEST_BYTES = 16;
export const RECORD_EPOCH_OFFSET = 16;
export const RECORD_SEQ_OFFSET = 24;
export const RECORD_USED_AT_OFFSET = 32;
export const RECORD_PLACES_OFFSET = 40;
export const PLACE_BYTES = 16;

/** Places in a record, by kind. */
export const WINDOW: readonly [number, number] = [PRODUCER_WINDOW, 1];
/** Bytes of a record, by kind. */
export const RECORD_BYTES: readonly [number, number] = [
  RECORD_PLACES_OFFSET + PLACE_BYTES * WINDOW[PRODUCER],
  RECORD_PLACES_OFFSET + PLACE_BYTES * WINDOW[KEY],
];

/** Records of a stream, back to back. */
export interface ProducerRecords {
  readonly producers: Uint8Array;
  readonly keys: Uint8Array;
}

export function recordsOf(records: ProducerRecords, kind: RecordKind): Uint8Array {
  return kind === PRODUCER ? records.producers : records.keys;
}

/** The records of one kind one by one, as views. */
export function* eachRecord(records: Uint8Array, kind: RecordKind): Generator<Uint8Array> {
  const bytes = RECORD_BYTES[kind];
  assert(records.length % bytes === 0, 'records: they are whole');
  for (let at = 0; at < records.length; at += bytes) yield records.subarray(at, at + bytes);
}

/** Seq in the stream of the last event that a record knows of: what it was newest with. */
export function newestPlaceOf(record: Uint8Array, kind: RecordKind): number {
  const view = new DataView(record.buffer, record.byteOffset, record.byteLength);
  const seq = view.getFloat64(RECORD_SEQ_OFFSET, true);
  return view.getFloat64(RECORD_PLACES_OFFSET + PLACE_BYTES * (seq % WINDOW[kind]) + 8, true);
}
