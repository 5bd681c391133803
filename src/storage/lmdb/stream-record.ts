/**
 * A stream's record as it is stored: 8 hexadecimal digits of the CRC-32 of what follows, a space, and JSON. The JSON
 * has the id in it too, so that no record passes for another stream's.
 */

import { crc32 } from 'node:zlib';
import { z } from 'zod';
import { LogCorruption, type LogId } from '../event-log.js';

const count = z.int().min(0);

const livingSchema = z.strictObject({
  id: count,
  name: z.string(),
  epoch: z.string(),
  config: z.strictObject({
    retention: z.strictObject({ events: count, bytes: count, ageMs: count }),
    overflow: z.enum(['evict', 'reject']),
    ttlMs: count,
  }),
  closed: z.boolean(),
  /**
   * Events below are gone, even where their block is still there. The last block of a stream stays for as long as the
   * stream: it says where the head was, so that no seq is given twice (I3).
   */
  floor: z.int().min(1),
});

/** A stream that was removed and has blocks left. Its id is kept from others until they are gone. */
const tombstoneSchema = z.strictObject({ id: count, removed: z.literal(true) });

const recordSchema = z.union([livingSchema, tombstoneSchema]);

export type LivingRecord = Readonly<z.infer<typeof livingSchema>>;
export type StreamRecord = LivingRecord | Readonly<z.infer<typeof tombstoneSchema>>;

const CHECKSUM_LENGTH = 8;

export function encodeRecord(record: StreamRecord): string {
  const json = JSON.stringify(record);
  return `${checksum(json)} ${json}`;
}

/** @param where names the record for whoever has to find it. */
export function decodeRecord(id: LogId, text: string, where: string): StreamRecord {
  const json = text.slice(CHECKSUM_LENGTH + 1);
  if (text !== `${checksum(json)} ${json}`) {
    throw new LogCorruption(`${where}: the checksum of the stream's record does not match`);
  }
  const { success, data, error } = recordSchema.safeParse(parse(json, where));
  if (!success) {
    throw new LogCorruption(`${where}: the stream's record is not one`, { cause: error });
  }
  if (data.id !== id) throw new LogCorruption(`${where}: the record is that of stream ${data.id}`);
  return data;
}

function parse(json: string, where: string): unknown {
  try {
    return JSON.parse(json);
  } catch (cause) {
    throw new LogCorruption(`${where}: the stream's record is not JSON`, { cause });
  }
}

export function checksum(json: string): string {
  return crc32(json).toString(16).padStart(CHECKSUM_LENGTH, '0');
}
