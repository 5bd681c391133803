/**
 * What a WebSocket says to a subscriber (contract 5): maps with a `kind`, as JSON text or as MessagePack.
 */

import { type ParsedEvent, parseFrames } from '../core/sse-parse.js';
import { packedEvent, packMessage, textEvent } from './shown-event.js';

export type MessageFormat = 'json' | 'msgpack';

/** A message that is not one of events. */
export interface LiveMessage {
  readonly kind: 'acked' | 'closed' | 'deleted' | 'draining' | 'error' | 'open' | 'position' | 'published';
  readonly [member: string]: unknown;
}

export function encodeMessage(format: MessageFormat, message: LiveMessage): string | Uint8Array {
  return format === 'json' ? JSON.stringify(message) : packMessage(message);
}

/**
 * A run of frames as one message: `{kind: "events", events: [{id, type, data, encoding?}]}`.
 * @param types null: all of them; else only these, `message` for the untyped.
 * @returns how many events it has, and no bytes where it has none.
 */
export function encodeEvents(
  format: MessageFormat,
  frames: Uint8Array,
  epoch: string,
  types: ReadonlySet<string> | null,
): { frames: Uint8Array; count: number } {
  const isWanted = ({ type }: ParsedEvent): boolean => types === null || types.has(type ?? 'message');
  const wanted = parseFrames(frames).filter(isWanted);
  const count = wanted.length;
  if (count === 0) return { frames: new Uint8Array(0), count };
  const shown = format === 'json' ? textEvent : packedEvent;
  const message = { kind: 'events', events: wanted.map((event) => shown(event, epoch)) };
  return {
    frames: format === 'json' ? Buffer.from(JSON.stringify(message)) : packMessage(message),
    count,
  };
}
