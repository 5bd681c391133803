import { assert } from '../../assert.js';
import { lowestHeld } from '../../core/acknowledge.js';
import { type Cursor, parseCursor } from '../../core/cursor.js';
import type { LogId } from '../event-log.js';
import { blockSpanMsMax, type Kept } from '../retention-floor.js';
import { type BlockShape, type PackedBlock, packRuns, type TimedRun } from './pack-runs.js';
import type { BlockStart } from './store-keys.js';
import type { LivingRecord } from './stream-record.js';

/** A stream as the writer of a log knows it: what is committed, and what is staged on top. */
export interface StreamTail {
  readonly id: LogId;
  /** As staged. */
  record: LivingRecord;
  /** As committed; null before the first commit. */
  stored: LivingRecord | null;
  /** As staged. */
  head: number;
  /** Staged, in order. */
  runs: TimedRun[];
  /** What named subscribers have, as staged. */
  readonly acked: Map<string, string>;
  /** Subscribers of whom something else is committed. */
  readonly ackedStaged: Set<string>;
  /** The newest block, as committed; null before the first event. */
  last: BlockShape | null;
  /** The committed block with the event at the floor; null when no committed event can be read. */
  floorBlock: BlockStart | null;
  /** Of the heap of oldest blocks: where the stream is in it, -1 for nowhere, and the bytes that it counts for. */
  heapIndex: number;
  countedBytes: number;
}

export function newTail(record: LivingRecord): StreamTail {
  return {
    id: record.id,
    record,
    stored: null,
    head: 0,
    runs: [],
    acked: new Map(),
    ackedStaged: new Set(),
    last: null,
    floorBlock: null,
    heapIndex: -1,
    countedBytes: 0,
  };
}

/** What is staged, as the blocks that it is stored in. */
export function packStaged({ last, runs, record }: StreamTail): PackedBlock[] {
  return packRuns(last, runs, blockSpanMsMax(record.config.retention));
}

export function committedHead({ last }: StreamTail): number {
  return last === null ? 0 : last.lastSeq;
}

/** Bytes of committed frames from the beginning of the block with the floor. */
export function keptBytes({ last, floorBlock }: StreamTail): number {
  if (last === null || floorBlock === null) return 0;
  return last.position + last.framesBytes - floorBlock.position;
}

/** What retention looks at; null when there is nothing that could go. */
export function keptOf({ record, last, floorBlock }: StreamTail): Kept | null {
  if (last === null || floorBlock === null) return null;
  return {
    floor: record.floor,
    block: floorBlock,
    head: last.lastSeq,
    endPosition: last.position + last.framesBytes,
    writtenAtMs: last.writtenAtMs,
  };
}

/** The lowest seq that named subscribers hold, as staged (contract 3.6); Infinity: none. */
export function heldSeqOf({ record, acked }: StreamTail): number {
  if (record.config.overflow === 'evict') return Number.POSITIVE_INFINITY;
  const cursors = [...acked.values()].map((text) => parseCursor(text) as Cursor);
  return lowestHeld(cursors, record);
}

/** What was staged is committed now: the record, what subscribers have, and the runs as `blocks`. */
export function settle(tail: StreamTail, blocks: readonly PackedBlock[]): void {
  tail.stored = tail.record;
  tail.runs = [];
  tail.ackedStaged.clear();
  const last = blocks.at(-1);
  if (last === undefined) return;
  tail.last = shapeOf(last);
  const { floor } = tail.record;
  if (tail.floorBlock === null && floor <= last.lastSeq) {
    tail.floorBlock = startOf(blocks.findLast(({ firstSeq }) => firstSeq <= floor) ?? last);
  }
}

/** Of what was staged, the floor alone is committed now. */
export function settleFloor(tail: StreamTail): void {
  assert(tail.stored !== null, 'the floor of a stream is stored after the stream');
  tail.stored = { ...tail.stored, floor: tail.record.floor };
}

/** Without the frames, which would be kept in memory. */
export function shapeOf(block: BlockShape): BlockShape {
  const { firstSeq, lastSeq, position, openedAtMs, writtenAtMs, framesBytes } = block;
  return { firstSeq, lastSeq, position, openedAtMs, writtenAtMs, framesBytes };
}

export function startOf({ firstSeq, position, openedAtMs }: BlockStart): BlockStart {
  return { firstSeq, position, openedAtMs };
}
