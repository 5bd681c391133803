/**
 * What a named subscriber of a stream in a replicated log has, as JSON: the newest entry of the subscriber that counts
 * says it.
 */

import { z } from 'zod';
import { CURSOR_LENGTH_MAX, parseCursor } from '../../core/cursor.js';
import { LogCorruption } from '../event-log.js';

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
  /** When it was written, Unix time in milliseconds. */
  atMs: count,
  /** Who wrote it, and which of its writes this is. */
  writer: z.string(),
});

export type SubscriberEntry = Readonly<z.infer<typeof entrySchema>>;

export function encodeSubscriberEntry(entry: SubscriberEntry): Uint8Array {
  return Buffer.from(JSON.stringify(entry));
}

/** @param where names the entry for whoever has to find it. @throws {LogCorruption} */
export function decodeSubscriberEntry(body: Uint8Array, where: string): SubscriberEntry {
  const { success, data, error } = entrySchema.safeParse(parse(Buffer.from(body).toString()));
  if (!success) throw new LogCorruption(`${where} is no entry of a named subscriber`, { cause: error });
  return data;
}

function parse(json: string): unknown {
  try {
    return JSON.parse(json);
  } catch {
    return undefined;
  }
}
