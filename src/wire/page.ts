import { Packr } from 'msgpackr';
import { formatCursor } from '../core/cursor.js';
import type { ParsedEvent } from '../core/sse-parse.js';

export type PageFormat = 'json' | 'msgpack' | 'ndjson';

/** One answer of a paged read (contract 6). */
export interface Page {
  readonly events: readonly ParsedEvent[];
  readonly epoch: string;
  /** The cursor to read on from. */
  readonly next: string;
  /** Whether `next` was the head when the page was read. */
  readonly upToDate: boolean;
  readonly closed: boolean;
}

/** An event as a page shows it; `data` is bytes only in MessagePack. */
interface PageEvent {
  readonly id: string;
  readonly type: string;
  readonly data: string | Uint8Array;
  readonly encoding?: 'base64';
}

/** Plain maps: msgpackr's own record extension is for msgpackr to read, and clients come in all languages. */
const packr = new Packr({ useRecords: false, variableMapSize: true });

const decoder = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true });

/**
 * Writes a page (contract 6): `{events: [{id, type, data, encoding?}], next, upToDate, closed}` in JSON and MessagePack.
 * In NDJSON one event a line; the rest of the page goes into headers, which are the caller's. Binary data is base64
 * with `encoding` in JSON, and bytes in MessagePack.
 */
export function encodePage(format: PageFormat, page: Page): string | Uint8Array {
  const { next, upToDate, closed } = page;
  switch (format) {
    case 'json':
      return JSON.stringify({
        events: page.events.map((event) => textEvent(event, page.epoch)),
        next,
        upToDate,
        closed,
      });
    case 'ndjson':
      return page.events.map((event) => `${JSON.stringify(textEvent(event, page.epoch))}\n`).join('');
    case 'msgpack':
      return packr.pack({
        events: page.events.map((event) => packedEvent(event, page.epoch)),
        next,
        upToDate,
        closed,
      });
  }
}

function textEvent({ seq, type, data, encoding }: ParsedEvent, epoch: string): PageEvent {
  const event = { id: formatCursor(epoch, seq), type: type ?? 'message', data: decoder.decode(data) };
  return encoding === null ? event : { ...event, encoding };
}

function packedEvent(event: ParsedEvent, epoch: string): PageEvent {
  const { encoding, ...shown } = textEvent(event, epoch);
  return encoding === undefined ? shown : { ...shown, data: Buffer.from(shown.data as string, 'base64') };
}
