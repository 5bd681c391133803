/**
 * Where a stream ends in the store, read back when the log is opened.
 */

import { lastBlock } from './block-scan.js';
import { LogCorruption } from './event-log.js';
import { keyAtOrBefore, type LmdbStore } from './lmdb-store.js';
import { type BlockStart, startOfKey } from './store-keys.js';
import type { LivingRecord } from './stream-record.js';
import { committedHead, newTail, type StreamTail, startOf } from './stream-tail.js';

/** @throws {LogCorruption} when what is stored does not fit together. */
export function loadTail(store: LmdbStore, record: LivingRecord): StreamTail {
  const tail = newTail(record);
  const last = lastBlock(store, record.id);
  if (last !== null) tail.last = { ...last };
  tail.stored = record;
  tail.head = committedHead(tail);
  if (record.floor > tail.head + 1) {
    throw new LogCorruption(
      `${store.path}, stream ${record.id}: its events begin with ${record.floor} and end with ${tail.head}: ` +
        'restore the file from a copy',
    );
  }
  tail.floorBlock = blockAt(store, tail, record.floor);
  return tail;
}

/** The committed block with the event `seq`; null when it is above the committed head. */
export function blockAt(store: LmdbStore, { id, last }: StreamTail, seq: number): BlockStart | null {
  if (last === null || seq > last.lastSeq) return null;
  if (seq >= last.firstSeq) return startOf(last);
  const key = keyAtOrBefore(store, id, seq);
  if (key !== null) return startOfKey(key);
  throw new LogCorruption(
    `${store.path}, stream ${id}: event ${seq} is missing: restore the file from a copy`,
  );
}
