/**
 * What a named subscriber of a stream in a replicated log has, as JSON in a format (entry-format.ts): the newest entry of
 * the subscriber that counts says it.
 */

import { z } from 'zod';
import { CURSOR_LENGTH_MAX, parseCursor } from '../../core/cursor.js';
import { decodeInFormat, encodeInFormat } from './entry-format.js';

const count = z.int().min(0);

const entrySchema = z.strictObject({
  /** As that of the stream (log-entry.ts): one that was made later under its name knows nothing of this subscriber. */
  origin: z.string().min(1).max(16),
  /** Its cursor; null: it was forgotten. */
  acked: z
    .string()
    .max(CURSOR_LENGTH_MAX)
    .refine((text) => parseCursor(text) !== null)
    .nullable(),
  /** Position of the entry that this one follows, of the same subscriber; 0: none. */
  previous: count,
  /** Who wrote that one, as in those of streams. */
  previousWriter: z.string(),
  /** When it came as if for the first time, Unix time in milliseconds: later each time that it does. */
  joinedMs: count,
  /** When it was written, Unix time in milliseconds. */
  atMs: count,
  /** Who wrote it, and which of its writes this is. */
  writer: z.string(),
});

export type SubscriberEntry = Readonly<z.infer<typeof entrySchema>>;

export function encodeSubscriberEntry(entry: SubscriberEntry): Uint8Array {
  return Buffer.from(encodeInFormat(entry));
}

/** @param where names the entry for whoever has to find it. @throws {LogCorruption} */
export function decodeSubscriberEntry(body: Uint8Array, where: string): SubscriberEntry {
  const json = Buffer.from(body).toString();
  return decodeInFormat(json, { schema: entrySchema, what: 'entry of a named subscriber', where });
}
