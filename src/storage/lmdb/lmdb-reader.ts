/**
 * Reads runs of events from the store, by memory map: on any thread of the writer's process, without locks.
 */

import { type EventLogReader, LogCorruption, type LogId, type LogRun, type ReadRange } from '../event-log.js';
import { storedBlocks } from './block-scan.js';
import { collectRun } from './collect-run.js';
import { asLogError, keyAtOrBefore, keysFrom, type LmdbStore, openStore } from './lmdb-store.js';
import { startOfKey, streamKey } from './store-keys.js';
import { decodeRecord } from './stream-record.js';
import { verifyStore } from './verify-store.js';

/** Opens a reader on the store that a writer of this process has open. */
export function openLmdbReader(directory: string): LmdbReader {
  return new LmdbReader(openStore(directory, { readOnly: true }));
}

/** Single user: the thread that opened it. */
export class LmdbReader implements EventLogReader {
  readonly #store: LmdbStore;

  constructor(store: LmdbStore) {
    this.#store = store;
  }

  read(id: LogId, range: ReadRange): LogRun | null {
    const { afterSeq, floor, committed } = range;
    if (afterSeq + 1 < floor || afterSeq >= committed) return null;
    try {
      const run = collectRun(this.#runsFrom(id, afterSeq + 1), range);
      if (run === null) this.#refuseHole(id, afterSeq + 1);
      return run;
    } catch (cause) {
      throw asLogError(cause, this.#store.path);
    } finally {
      // The snapshot would stand for as long as this turn of the loop: a later read would miss what was committed in
      // between, and the writer could not use what was freed.
      this.#store.root.resetReadTxn();
    }
  }

  /** Reads all that is stored, and yields what is wrong with it. */
  *verify(): Generator<string> {
    try {
      yield* verifyStore(this.#store);
    } finally {
      this.#store.root.resetReadTxn();
    }
  }

  async dispose(): Promise<void> {
    await this.#store.root.close();
  }

  /** The stored runs from the one that holds `seq` on; none when it is not there. */
  *#runsFrom(id: LogId, seq: number): Generator<LogRun> {
    const key = keyAtOrBefore(this.#store, id, seq);
    if (key === null) return;
    for (const block of storedBlocks(this.#store, id, startOfKey(key).firstSeq)) {
      if (block.lastSeq >= seq) yield { ...block, frames: block.frames() };
    }
  }

  /** Where no event was found from `seq` on, there has to be a reason. */
  #refuseHole(id: LogId, seq: number): void {
    const where = `${this.#store.path}, stream ${id}`;
    const text = this.#store.streams.get(streamKey(id));
    if (text === undefined) return;
    const record = decodeRecord(id, text, where);
    if ('removed' in record || seq < record.floor) return;
    for (const key of keysFrom(this.#store, id, { from: seq, limit: 1 })) {
      const { firstSeq } = startOfKey(key);
      throw new LogCorruption(
        `${where}: events ${seq} to ${firstSeq - 1} are missing: restore the file from a copy`,
      );
    }
  }
}
