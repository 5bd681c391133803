/**
 * Finds the borders of frames in a run. A blank line ends a frame and stands nowhere else, for every line of data has
 * its field name before it (contract 4.3). Used where runs come without an index: from a log.
 */

import { assert } from '../assert.js';

const LF = 0x0a;

/** Offset just after the frame that starts at `start`. */
export function endOfFrame(frames: Uint8Array, start: number): number {
  let at = start;
  for (;;) {
    at = frames.indexOf(LF, at) + 1;
    assert(at > 0, 'a run is made of whole frames');
    if (frames[at] === LF) return at + 1;
  }
}

/** Offset just after the first `count` frames. */
export function skipFrames(frames: Uint8Array, count: number): number {
  let at = 0;
  for (let i = 0; i < count; i++) at = endOfFrame(frames, at);
  return at;
}

/**
 * The frames from offset `start` on that fit into `bytesMax`, but at least one: how many, and the offset where they
 * end. None only where none are left.
 */
export function framesWithin(
  frames: Uint8Array,
  start: number,
  bytesMax: number,
): { count: number; end: number } {
  let count = 0;
  let end = start;
  while (end < frames.length) {
    const next = endOfFrame(frames, end);
    if (count > 0 && next - start > bytesMax) break;
    end = next;
    count++;
  }
  return { count, end };
}
