/** Events as they are handed to the coordinator, for a log that brokers share. */

import type { EventParts } from '../../core/event-parts.js';
import { FrameBatch } from '../../core/sse-frame.js';

/** Room for a frame beside its text. */
const FRAME_BYTES = 1024;

/** A copy of what a batch holds, for the batch is used again. */
export function copyParts({ bytes, size, ends, count }: FrameBatch): EventParts {
  return { bytes: bytes.slice(0, size), ends: ends.slice(0, count) };
}

/** One short event. @param type null: it has none. */
export function partsOf(text: string, type: string | null): EventParts {
  const bytes = Buffer.from(text);
  const batch = new FrameBatch(bytes.length * 2 + FRAME_BYTES);
  batch.pushText(bytes, 0, bytes.length, type);
  return copyParts(batch);
}
