/**
 * One entry of a replicated log: a run of events of one stream, perhaps none, and where the stream stands after it. As
 * each says all of that, the newest of a stream is enough to take the stream up.
 *
 * A header of the message has the entry as JSON, in a format (entry-format.ts). Its body has the events, so that a writer
 * which lost a race gives them other seqs without touching them:
 *
 *   offset size type  field
 *        0  4*n u32[] ends   of each event's part, little-endian, counted from the first part; n as the entry says
 *      4*n    … u8[]  parts  each event as its SSE frame but for the `id` line, back to back
 */

import { z } from 'zod';
import type { EventParts } from '../../core/event-parts.js';
import { KEY, PRODUCER } from '../../core/producer-record.js';
import { LogCorruption } from '../event-log.js';
import { decodeInFormat, encodeInFormat } from './entry-format.js';

const count = z.int().min(0);

const claimSchema = z.strictObject({
  kind: z.union([z.literal(PRODUCER), z.literal(KEY)]),
  /** Of the producer's id, or the key; hexadecimal. */
  digest: z.string().length(32),
  epoch: count,
  seq: count,
  first: count,
  last: count,
});

const entrySchema = z.strictObject({
  epoch: z.string().min(1).max(16),
  /** Epoch under which it was created; it has another now where the log lost some of it, and it began anew. */
  origin: z.string().min(1).max(16),
  config: z.strictObject({
    retention: z.strictObject({ events: count, bytes: count, ageMs: count }),
    overflow: z.enum(['evict', 'reject']),
    ttlMs: count,
  }),
  state: z.enum(['open', 'closed', 'removed']),
  /** Events in the body. */
  count,
  /** Seq of the newest event, of those in the body or of before. */
  head: count,
  /** Bytes of all parts from the stream's first to its newest. */
  bytes: count,
  /** Lowest seq that can be read; head + 1 when there is none. */
  floor: z.int().min(1),
  /** As `bytes`, of what is below the floor. */
  floorBytes: count,
  /** Nothing of the stream that lies before this position in the log can be read. */
  floorAt: count,
  /** When the event at the floor was appended, Unix time in milliseconds. */
  floorAtMs: count,
  /** Position of the entry that this one follows; it counts only if that is the newest that does. 0: none. */
  previous: count,
  /** Who wrote that one: where the log has lost it, its position is given again. Empty: there is none. */
  previousWriter: z.string(),
  /** Entries after this position may tell of publishers that are remembered; null: none does. */
  claimsAfter: count.nullable(),
  /** Named subscribers that began to hold events did so up to this position: whoever moves the floor has to know of them. */
  joinedAt: count,
  /** When it was written, Unix time in milliseconds. */
  atMs: count,
  /** Who wrote it, and which of its writes this is. */
  writer: z.string(),
  /** Who published the events, where they said so. */
  claims: z.array(claimSchema),
});

export type EntryClaim = Readonly<z.infer<typeof claimSchema>>;
export type LogEntry = Readonly<z.infer<typeof entrySchema>>;

const NO_BYTES = new Uint8Array(0);

export function encodeEntry(entry: LogEntry): string {
  return encodeInFormat(entry);
}

/** @param where names the entry for whoever has to find it. @throws {LogCorruption} */
export function decodeEntry(json: string, where: string): LogEntry {
  return decodeInFormat(json, { schema: entrySchema, what: 'entry of a stream', where });
}

/** The body of an entry: of one publish after another. */
export function encodeParts(publishes: readonly EventParts[]): Uint8Array {
  const events = publishes.reduce((sum, { ends }) => sum + ends.length, 0);
  if (events === 0) return NO_BYTES;
  const size = publishes.reduce((sum, { bytes }) => sum + bytes.length, 0);
  const body = Buffer.allocUnsafe(4 * events + size);
  let endAt = 0;
  let base = 0;
  for (const { bytes, ends } of publishes) {
    for (const end of ends) endAt = body.writeUInt32LE(base + end, endAt);
    body.set(bytes, 4 * events + base);
    base += bytes.length;
  }
  return body;
}

/** @throws {LogCorruption} when the body is not that of `events` events. */
export function decodeParts(body: Uint8Array, events: number, where: string): EventParts {
  const endsBytes = 4 * events;
  if (body.length < endsBytes) throw new LogCorruption(`${where} is shorter than its events`);
  const ends = new Uint32Array(events);
  const view = new DataView(body.buffer, body.byteOffset, endsBytes);
  let before = 0;
  for (let i = 0; i < events; i++) {
    const end = view.getUint32(4 * i, true);
    if (end <= before) throw new LogCorruption(`${where} has events that overlap`);
    ends[i] = end;
    before = end;
  }
  const bytes = body.subarray(endsBytes);
  if (bytes.length !== before) throw new LogCorruption(`${where} does not end with its events`);
  return { bytes, ends };
}
