import type { ParsedEvent } from '../core/sse-parse.js';
import { packedEvent, packMessage, textEvent } from './shown-event.js';

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
      return packMessage({
        events: page.events.map((event) => packedEvent(event, page.epoch)),
        next,
        upToDate,
        closed,
      });
  }
}
