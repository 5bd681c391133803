/**
 * Events of a subscription to several streams (contract 4.10): frames whose data says of which stream they are. The id
 * is that of the event in its stream, and is replaced for each connection, for it tells of all its streams.
 */

import { assert } from '../assert.js';
import { formatCursor } from '../core/cursor.js';
import { endOfFrame } from '../core/frame-scan.js';
import { parseFrames } from '../core/sse-parse.js';
import { textEvent } from './shown-event.js';

const LF = 0x0a;
const DOT = 0x2e;
const ZERO = 0x30;

/**
 * A run of a stream's frames as those of several streams: `{"stream", "id", "type", "data", "encoding"?}` as data.
 * @param types null: all of them.
 */
export function encodeMultiFrames(
  frames: Uint8Array,
  { name, epoch }: { name: string; epoch: string },
  types: ReadonlySet<string> | null,
): { frames: Uint8Array; count: number } {
  let text = '';
  let count = 0;
  for (const event of parseFrames(frames)) {
    if (types !== null && !types.has(event.type ?? 'message')) continue;
    count++;
    const typeLine = event.type === null ? '' : `event: ${event.type}\n`;
    const data = JSON.stringify({ stream: name, ...textEvent(event, epoch) });
    text += `id: ${formatCursor(epoch, event.seq)}\n${typeLine}data: ${data}\n\n`;
  }
  return { frames: Buffer.from(text), count };
}

/** The same frames with other ids: `idOf` is asked for each, with its seq. */
export function withIds(frames: Uint8Array, idOf: (seq: number) => string): Uint8Array {
  const parts: Uint8Array[] = [];
  for (let at = 0; at < frames.length; ) {
    const lineEnd = frames.indexOf(LF, at);
    const end = endOfFrame(frames, at);
    parts.push(Buffer.from(`id: ${idOf(seqOfLine(frames, at, lineEnd))}`), frames.subarray(lineEnd, end));
    at = end;
  }
  return Buffer.concat(parts);
}

/** The seq in `id: <epoch>.<seq>`. */
function seqOfLine(frames: Uint8Array, start: number, end: number): number {
  const dot = frames.indexOf(DOT, start);
  assert(dot > start && dot < end, 'a frame begins with its id');
  let seq = 0;
  for (let i = dot + 1; i < end; i++) seq = seq * 10 + (frames[i] as number) - ZERO;
  return seq;
}
