import { mustGo, type Retention, type StreamConfig } from '../core/retention.js';
import type { BlockStart } from './lmdb/store-keys.js';

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

/**
 * As `retentionFloor`, of a stream whose named subscribers may hold events (contract 3.6): what they hold goes for its age
 * alone.
 *
 * @param heldSeq the lowest seq that they hold; Infinity: none.
 */
export function floorBelowHeld(
  { retention, overflow }: StreamConfig,
  kept: Kept,
  nowMs: number,
  heldSeq: number,
  blocksAfter: () => Iterable<BlockStart>,
): number {
  if (overflow === 'evict') return retentionFloor(retention, kept, nowMs, blocksAfter);
  const bySize = retentionFloor({ ...retention, ageMs: 0 }, kept, nowMs, blocksAfter);
  const byAge = retentionFloor({ ...retention, events: 0, bytes: 0 }, kept, nowMs, blocksAfter);
  return Math.max(Math.min(bySize, heldSeq), byAge, kept.floor);
}

/**
 * Whether what named subscribers hold is more than the stream keeps, so that publishers have to wait.
 *
 * @param from where what they hold begins: the seq, and the block that it is in.
 */
export function isFullOfHeld(
  { retention }: StreamConfig,
  kept: Pick<Kept, 'head' | 'endPosition'>,
  from: { readonly seq: number; readonly block: BlockStart },
): boolean {
  const { events, bytes } = retention;
  return (
    mustGo(kept.head - from.seq + 1, events) > 0 || mustGo(kept.endPosition - from.block.position, bytes) > 0
  );
}

/** How far apart in time the events of one block may be, so that none gets much older than twice its age. */
export function blockSpanMsMax(retention: Retention): number {
  return retention.ageMs > 0 ? retention.ageMs / 2 : Number.POSITIVE_INFINITY;
}
