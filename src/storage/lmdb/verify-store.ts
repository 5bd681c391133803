import { framesWithin } from '../../core/frame-scan.js';
import { LogCorruption, type LogId } from '../event-log.js';
import { storedBlocks } from './block-scan.js';
import { type LmdbStore, streamTexts } from './lmdb-store.js';
import { decodeRecord, type LivingRecord } from './stream-record.js';
import { decodeAcked } from './subscriber-record.js';

/**
 * Reads all that is stored, and yields what is wrong, a sentence each. Not for a store that is in use: it takes as long
 * as the file is large.
 */
export function* verifyStore(store: LmdbStore): Generator<string> {
  for (const { id, text, subscribers } of streamTexts(store)) {
    try {
      const where = `${store.path}, stream ${id}`;
      const record = decodeRecord(id, text, where);
      for (const [name, acked] of subscribers) decodeAcked(id, name, acked, where);
      if (!('removed' in record)) yield* verifyStream(store, id, record);
    } catch (error) {
      if (!(error instanceof LogCorruption)) throw error;
      yield error.message;
    }
  }
}

function* verifyStream(store: LmdbStore, id: LogId, { floor }: LivingRecord): Generator<string> {
  let firstSeq: number | null = null;
  let head = 0;
  for (const block of storedBlocks(store, id, 0)) {
    const frames = block.frames();
    const { count } = framesWithin(frames, 0, frames.length);
    if (count !== block.lastSeq - block.firstSeq + 1) {
      yield `stream ${id}: the block of event ${block.firstSeq} has ${count} events`;
    }
    firstSeq ??= block.firstSeq;
    head = block.lastSeq;
  }
  if (floor > head + 1 || floor < (firstSeq ?? 1)) {
    yield `stream ${id}: its floor is ${floor}, and it has events ${firstSeq} to ${head}`;
  }
}
