import { Packr } from 'msgpackr/pack';
import { formatCursor } from '../core/cursor.js';
import type { ParsedEvent } from '../core/sse-parse.js';

/** An event as pages and messages show it (contract 5, 6); `data` is bytes only in MessagePack. */
export interface ShownEvent {
  readonly id: string;
  readonly type: string;
  readonly data: string | Uint8Array;
  readonly encoding?: 'base64';
}

/** Plain maps: msgpackr's own record extension is for msgpackr to read, and clients come in all languages. */
const packr = new Packr({ useRecords: false, variableMapSize: true });

const decoder = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true });

/** For JSON: binary data is base64, and says so. */
export function textEvent({ seq, type, data, encoding }: ParsedEvent, epoch: string): ShownEvent {
  const event = { id: formatCursor(epoch, seq), type: type ?? 'message', data: decoder.decode(data) };
  return encoding === null ? event : { ...event, encoding };
}

/** For MessagePack: binary data is bytes. */
export function packedEvent(event: ParsedEvent, epoch: string): ShownEvent {
  const { encoding, ...shown } = textEvent(event, epoch);
  return encoding === undefined ? shown : { ...shown, data: Buffer.from(shown.data as string, 'base64') };
}

export function packMessage(value: unknown): Uint8Array {
  return packr.pack(value);
}
