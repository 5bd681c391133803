import { mustGo, type Retention } from '../core/retention.js';
import type { BlockStart } from './store-keys.js';

/** What a stream keeps, as far as it is committed. */
export interface Kept {
  /** Lowest seq that can be read, and the block that it is in. */
  readonly floor: number;
  readonly block: BlockStart;
  readonly head: number;
  /** Where the frames end that were appended so far, counted as the positions of blocks are. */
  readonly endPosition: number;
  /** When the newest event was appended. */
  readonly writtenAtMs: number;
}

/** Bounds what one call looks at; the next goes on. */
const BLOCKS_MAX = 1024;

/**
 * The floor that a stream's retention asks for (contract 2.1). Exact in events. In bytes and age whole blocks go, and
 * only when more than twice the limit is kept; at least the limit stays.
 *
 * @param blocksAfter the starts of the blocks after the one with the floor, in order.
 */
export function retentionFloor(
  retention: Retention,
  kept: Kept,
  nowMs: number,
  blocksAfter: () => Iterable<BlockStart>,
): number {
  const { head, endPosition, block } = kept;
  let floor = kept.floor + mustGo(head - kept.floor + 1, retention.events);
  // A block may go when it ends at or before this position, or when its newest event is as old as this.
  const bytesGoTo =
    mustGo(endPosition - block.position, retention.bytes) > 0 ? endPosition - retention.bytes : -1;
  const ageGoesTo = mustGo(nowMs - block.openedAtMs, retention.ageMs) > 0 ? nowMs - retention.ageMs : -1;
  if (bytesGoTo < 0 && ageGoesTo < 0) return floor;

  let left = BLOCKS_MAX;
  for (const next of blocksAfter()) {
    // What was appended before `next` was opened is no younger than that.
    if (next.position > bytesGoTo && next.openedAtMs > ageGoesTo) return floor;
    floor = Math.max(floor, next.firstSeq);
    if (--left === 0) return floor;
  }
  return kept.writtenAtMs <= ageGoesTo ? head + 1 : floor;
}

/** How far apart in time the events of one block may be, so that none gets much older than twice its age. */
export function blockSpanMsMax(retention: Retention): number {
  return retention.ageMs > 0 ? retention.ageMs / 2 : Number.POSITIVE_INFINITY;
}
