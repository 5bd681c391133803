import type { LogId } from '../event-log.js';
import type { LmdbStore } from './lmdb-store.js';
import { checkBlocks } from './store-check.js';
import { blocksEnd, blocksFrom, producersRange, streamKey } from './store-keys.js';
import type { StreamTail } from './stream-tail.js';

/** What is to be deleted, blocks above all. It goes in the background, some with each commit. Single user: the writer. */
export class BlockDeletes {
  readonly #store: LmdbStore;
  /** Streams that live; of one that is not here, all goes. */
  readonly #tails: ReadonlyMap<LogId, StreamTail>;
  readonly #ids = new Set<LogId>();

  constructor(store: LmdbStore, tails: ReadonlyMap<LogId, StreamTail>) {
    this.#store = store;
    this.#tails = tails;
  }

  get isPending(): boolean {
    return this.#ids.size > 0;
  }

  /** The stream has blocks below its floor, or was removed. */
  add(id: LogId): void {
    this.#ids.add(id);
  }

  has(id: LogId): boolean {
    return this.#ids.has(id);
  }

  /** Living streams that have blocks to delete, as many as are looked at for so many blocks. */
  *living(blocksMax: number): Generator<StreamTail> {
    let left = blocksMax;
    for (const id of this.#ids) {
      const tail = this.#tails.get(id);
      if (tail !== undefined) yield tail;
      if (--left === 0) return;
    }
  }

  /**
   * Deletes blocks that lie wholly below their stream's floor, and those of removed streams with what is remembered of
   * their publishers. The last block of a living stream stays (I3). To be called in a transaction.
   *
   * @param blocksMax how many go at most; to look at a stream counts as one.
   * @returns the streams that have none left, for when the transaction is committed.
   */
  deleteSome(blocksMax: number): LogId[] {
    const finished: LogId[] = [];
    let left = blocksMax;
    for (const id of this.#ids) {
      if (left <= 0) break;
      const keys = [...this.#store.blocks.getKeys({ ...this.#range(id), limit: left })] as Buffer[];
      const [firstKey] = keys;
      const lastKey = keys.at(-1);
      if (firstKey !== undefined && lastKey !== undefined) checkBlocks(this.#store.path, firstKey, lastKey);
      for (const key of keys) this.#store.blocks.removeSync(key);
      const isDone = keys.length < left;
      left -= keys.length + 1;
      if (!isDone) break;
      if (!this.#tails.has(id)) {
        if (left <= 0) break;
        const gone = this.#deleteProducers(id, left);
        left -= gone.count;
        if (!gone.isDone) break;
        this.#store.streams.removeSync(streamKey(id));
      }
      finished.push(id);
    }
    return finished;
  }

  #deleteProducers(id: LogId, countMax: number): { count: number; isDone: boolean } {
    const range = { ...producersRange(id), limit: countMax };
    const keys = [...this.#store.producers.getKeys(range)] as Buffer[];
    for (const key of keys) this.#store.producers.removeSync(key);
    return { count: keys.length, isDone: keys.length < countMax };
  }

  settle(finished: readonly LogId[]): void {
    for (const id of finished) this.#ids.delete(id);
  }

  #range(id: LogId): { start: Buffer; end: Buffer } {
    const start = blocksFrom(id, 0);
    const tail = this.#tails.get(id);
    if (tail === undefined) return { start, end: blocksEnd(id) };
    return { start, end: blocksFrom(id, (tail.floorBlock ?? tail.last)?.firstSeq ?? 0) };
  }
}
