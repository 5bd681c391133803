/**
 * Cuts what is appended to a stream into blocks: not too large, for a reader decodes a whole block for one event of
 * it; and not too small, or a stream that is published to one event at a time would be read back one event at a time.
 */

import { framesWithin } from '../../core/frame-scan.js';
import type { LogRun } from '../event-log.js';

/** A block takes no more runs in above this, and a longer run is cut. Only one frame alone may be longer. */
export const BLOCK_BYTES_MAX = 64 * 1024;

/** Below this a stored block takes the next run in. Each commit writes it anew, so it is kept small. */
export const MERGE_BYTES_MAX = 16 * 1024;

export interface TimedRun extends LogRun {
  readonly writtenAtMs: number;
}

/** The extent of a block: what its header says but for the stream. */
export interface BlockShape {
  readonly firstSeq: number;
  readonly lastSeq: number;
  readonly position: number;
  readonly openedAtMs: number;
  readonly writtenAtMs: number;
  readonly framesBytes: number;
}

export interface PackedBlock extends BlockShape {
  /** It takes the place of the last stored block, whose frames come before `parts`. */
  readonly mergesLast: boolean;
  readonly parts: readonly Uint8Array[];
}

/**
 * @param last the stream's last stored block.
 * @param runs what follows it.
 * @param spanMsMax how far apart the events of one block may be in time; they can only age out together.
 */
export function packRuns(
  last: BlockShape | null,
  runs: readonly TimedRun[],
  spanMsMax: number,
): PackedBlock[] {
  const blocks: PackedBlock[] = [];
  let packing: Packing | null =
    last !== null && last.framesBytes < MERGE_BYTES_MAX ? mergingInto(last) : null;
  let position = last === null ? 0 : last.position + last.framesBytes;
  for (const run of runs) {
    for (const piece of cut(run)) {
      if (packing === null || !takes(packing, piece, spanMsMax)) {
        if (packing !== null && packing.parts.length > 0) blocks.push(packing);
        packing = opening(piece, position);
      }
      add(packing, piece);
      position += piece.frames.length;
    }
  }
  if (packing !== null && packing.parts.length > 0) blocks.push(packing);
  return blocks;
}

/** A block that is being filled. */
interface Packing {
  readonly firstSeq: number;
  lastSeq: number;
  readonly position: number;
  readonly openedAtMs: number;
  writtenAtMs: number;
  framesBytes: number;
  readonly mergesLast: boolean;
  readonly parts: Uint8Array[];
}

function mergingInto(last: BlockShape): Packing {
  const { firstSeq, lastSeq, position, openedAtMs, writtenAtMs, framesBytes } = last;
  return { firstSeq, lastSeq, position, openedAtMs, writtenAtMs, framesBytes, mergesLast: true, parts: [] };
}

function opening(piece: TimedRun, position: number): Packing {
  return {
    firstSeq: piece.firstSeq,
    lastSeq: piece.firstSeq - 1,
    position,
    openedAtMs: piece.writtenAtMs,
    writtenAtMs: piece.writtenAtMs,
    framesBytes: 0,
    mergesLast: false,
    parts: [],
  };
}

function takes(block: Packing, piece: TimedRun, spanMsMax: number): boolean {
  const bytesMax = block.mergesLast && block.parts.length === 0 ? MERGE_BYTES_MAX : BLOCK_BYTES_MAX;
  return (
    block.framesBytes + piece.frames.length <= bytesMax && piece.writtenAtMs - block.openedAtMs <= spanMsMax
  );
}

function add(block: Packing, piece: TimedRun): void {
  block.lastSeq = piece.lastSeq;
  block.writtenAtMs = Math.max(block.writtenAtMs, piece.writtenAtMs);
  block.framesBytes += piece.frames.length;
  block.parts.push(piece.frames);
}

/** A run in pieces of whole frames, none longer than a block unless it is one frame. */
function* cut(run: TimedRun): Generator<TimedRun> {
  const { frames, writtenAtMs } = run;
  if (frames.length <= BLOCK_BYTES_MAX) return yield run;
  let firstSeq = run.firstSeq;
  for (let start = 0; start < frames.length; ) {
    const { count, end } = framesWithin(frames, start, BLOCK_BYTES_MAX);
    yield { firstSeq, lastSeq: firstSeq + count - 1, frames: frames.subarray(start, end), writtenAtMs };
    firstSeq += count;
    start = end;
  }
}
