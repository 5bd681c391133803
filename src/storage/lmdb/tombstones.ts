/**
 * Streams that were removed and have no tombstone yet. With it goes what their named subscribers have.
 */

import type { LogId } from '../event-log.js';
import type { LmdbStore } from './lmdb-store.js';
import { streamKey, subscriberKey } from './store-keys.js';
import { encodeRecord } from './stream-record.js';
import type { StreamTail } from './stream-tail.js';

export class Tombstones {
  readonly #store: LmdbStore;
  /** With the subscribers that may be stored of each. */
  readonly #removed = new Map<LogId, ReadonlySet<string>>();

  constructor(store: LmdbStore) {
    this.#store = store;
  }

  /** The stream is removed with the next commit. */
  add({ id, acked, ackedStaged }: StreamTail): void {
    this.#removed.set(id, new Set([...acked.keys(), ...ackedStaged]));
  }

  get size(): number {
    return this.#removed.size;
  }

  /** Records that `write` touches. */
  get puts(): number {
    let puts = this.#removed.size;
    for (const subscribers of this.#removed.values()) puts += subscribers.size;
    return puts;
  }

  /** Within a transaction. */
  write(): void {
    const { streams } = this.#store;
    for (const [id, subscribers] of this.#removed) {
      for (const subscriber of subscribers) streams.removeSync(subscriberKey(id, subscriber));
      streams.putSync(streamKey(id), encodeRecord({ id, removed: true }));
    }
  }

  /** What was written is committed. */
  settle(): void {
    this.#removed.clear();
  }
}
