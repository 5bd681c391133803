/**
 * Where streams end in the store, read back when the log is opened.
 */

import { assert } from '../../assert.js';
import { LogCorruption, type LogId } from '../event-log.js';
import { blockOf } from './block-scan.js';
import { keyAtOrBefore, type LmdbStore } from './lmdb-store.js';
import { type BlockStart, blockKey, idOfKey, startOfKey } from './store-keys.js';
import type { LivingRecord } from './stream-record.js';
import { committedHead, newTail, type StreamTail, shapeOf, startOf } from './stream-tail.js';

/**
 * Goes through the keys of all blocks once, in the order of the streams: to look for the ends of each stream on its own
 * would cost several times as much.
 */
export class TailLoader {
  readonly #store: LmdbStore;
  readonly #keys: Iterator<Buffer>;
  #key: Buffer | null = null;

  constructor(store: LmdbStore) {
    this.#store = store;
    this.#keys = (store.blocks.getKeys({}) as Iterable<Buffer>)[Symbol.iterator]();
    this.#advance();
  }

  /**
   * The next stream.
   *
   * @throws {LogCorruption} when what is stored does not fit together.
   */
  load(record: LivingRecord): StreamTail {
    const { floorKey, lastKey } = this.#keysOf(record.id, record.floor);
    const tail = newTail(record);
    tail.stored = record;
    if (lastKey !== null) {
      const last = blockOf(this.#store, lastKey);
      if (last === null) throw missing(this.#store, record.id, startOfKey(lastKey).firstSeq);
      tail.last = shapeOf(last);
    }
    tail.head = committedHead(tail);
    if (record.floor > tail.head + 1) {
      throw new LogCorruption(
        `${this.#store.path}, stream ${record.id}: its events begin with ${record.floor} and end with ${tail.head}: ` +
          'restore the file from a copy',
      );
    }
    if (record.floor <= tail.head) {
      if (floorKey === null) throw missing(this.#store, record.id, record.floor);
      tail.floorBlock = startOfKey(floorKey);
    }
    return tail;
  }

  /** Passes over the blocks of a stream that was removed. */
  skip(id: LogId): void {
    this.#keysOf(id, 0);
  }

  #keysOf(id: LogId, floor: number): { floorKey: Buffer | null; lastKey: Buffer | null } {
    let floorKey: Buffer | null = null;
    let lastKey: Buffer | null = null;
    for (; this.#key !== null && idOfKey(this.#key) <= id; this.#advance()) {
      lastKey = this.#key;
      if (startOfKey(lastKey).firstSeq <= floor) floorKey = lastKey;
    }
    return { floorKey, lastKey };
  }

  #advance(): void {
    const { done, value } = this.#keys.next();
    this.#key = done === true ? null : value;
  }
}

/** The committed block with the event `seq`; null when it is above the committed head. */
export function blockAt(store: LmdbStore, { id, last }: StreamTail, seq: number): BlockStart | null {
  if (last === null || seq > last.lastSeq) return null;
  if (seq >= last.firstSeq) return startOf(last);
  const key = keyAtOrBefore(store, id, seq);
  if (key !== null) return startOfKey(key);
  throw missing(store, id, seq);
}

/** The frames of the last block, into which others are merged. */
export function lastFrames(store: LmdbStore, { id, last }: StreamTail): Buffer {
  assert(last !== null, 'a block is merged into one that is there');
  const block = blockOf(store, blockKey(id, last));
  assert(block?.lastSeq === last.lastSeq, 'I3: a stream ends in the store where its writer says');
  return block.frames();
}

function missing(store: LmdbStore, id: LogId, seq: number): LogCorruption {
  return new LogCorruption(
    `${store.path}, stream ${id}: event ${seq} is missing: restore the file from a copy`,
  );
}
