/**
 * What a named subscriber has, as it is stored: 8 hexadecimal digits of a CRC-32, a space, and its cursor. The checksum
 * is over the cursor, the id of the stream and the name, so that no record passes for another's.
 */

import { parseCursor } from '../../core/cursor.js';
import { LogCorruption, type LogId } from '../event-log.js';
import { checksum } from './stream-record.js';

export function encodeAcked(id: LogId, subscriber: string, cursor: string): string {
  return `${checksumOf(id, subscriber, cursor)} ${cursor}`;
}

/** @param where names the stream for whoever has to find it. */
export function decodeAcked(id: LogId, subscriber: string, text: string, where: string): string {
  const cursor = text.slice(text.indexOf(' ') + 1);
  if (text !== encodeAcked(id, subscriber, cursor) || parseCursor(cursor) === null) {
    throw new LogCorruption(`${where}: the record of its subscriber ${subscriber} is damaged`);
  }
  return cursor;
}

function checksumOf(id: LogId, subscriber: string, cursor: string): string {
  return checksum(`${id} ${subscriber} ${cursor}`);
}
