import { LogCorruption, type LogId } from '../event-log.js';
import { type BlockHeader, decodeFrames, decodeHeader } from './block.js';
import type { LmdbStore } from './lmdb-store.js';
import { blockKey, blocksEnd, blocksFrom, idOfKey, startOfKey } from './store-keys.js';

/** A block as it is stored, its header checked. */
export interface StoredBlock extends BlockHeader {
  /** Checks and returns the frames. */
  frames(): Buffer;
}

/**
 * A stream's blocks, in order, from the first that begins with `firstSeq` or later.
 *
 * @throws {LogCorruption} when one is not what its key says, or does not follow the one before.
 */
export function* storedBlocks(store: LmdbStore, id: LogId, firstSeq: number): Generator<StoredBlock> {
  const range = store.blocks.getRange({ start: blocksFrom(id, firstSeq), end: blocksEnd(id) });
  let before: BlockHeader | null = null;
  for (const { key, value } of range) {
    const block = storedBlock(store, key, value);
    if (before !== null) refuseSeam(store, before, block);
    yield block;
    before = block;
  }
}

/** The block by a key; null when there is none. */
export function blockOf(store: LmdbStore, key: Buffer): StoredBlock | null {
  const value = store.blocks.get(key);
  return value === undefined ? null : storedBlock(store, key, value);
}

function storedBlock(store: LmdbStore, key: Buffer, value: Buffer): StoredBlock {
  const id = idOfKey(key);
  const where = `${store.path}, stream ${id}, block of event ${startOfKey(key).firstSeq}`;
  const header = decodeHeader(value, where);
  if (header.id !== id || !blockKey(id, header).equals(key) || header.lastSeq < header.firstSeq) {
    throw new LogCorruption(`${where}: the block says that it is another: restore the file from a copy`);
  }
  return { ...header, frames: () => decodeFrames(value, where) };
}

function refuseSeam(store: LmdbStore, before: BlockHeader, after: BlockHeader): void {
  const follows =
    after.firstSeq === before.lastSeq + 1 && after.position === before.position + before.framesBytes;
  if (follows) return;
  throw new LogCorruption(
    `${store.path}, stream ${before.id}: the block after event ${before.lastSeq} begins with ` +
      `${after.firstSeq}: restore the file from a copy`,
  );
}
