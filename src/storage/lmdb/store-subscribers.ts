/**
 * Named subscribers in the store: what each has lies beside its stream's record, and goes with it.
 */

import type { LmdbStore } from './lmdb-store.js';
import { subscriberKey } from './store-keys.js';
import type { StreamTail } from './stream-tail.js';
import { decodeAcked, encodeAcked } from './subscriber-record.js';

/** @throws {LogCorruption} */
export function readAcked(tail: StreamTail, texts: ReadonlyMap<string, string>, where: string): void {
  for (const [name, text] of texts) tail.acked.set(name, decodeAcked(tail.id, name, text, where));
}

/** @param cursor null: the subscriber is forgotten. */
export function stageAcked(tail: StreamTail, subscriber: string, cursor: string | null): void {
  if (cursor === null) tail.acked.delete(subscriber);
  else tail.acked.set(subscriber, cursor);
  tail.ackedStaged.add(subscriber);
}

/** Within a transaction: what is staged. */
export function writeAcked({ streams }: LmdbStore, { id, acked, ackedStaged }: StreamTail): void {
  for (const subscriber of ackedStaged) {
    const cursor = acked.get(subscriber);
    const key = subscriberKey(id, subscriber);
    if (cursor === undefined) streams.removeSync(key);
    else streams.putSync(key, encodeAcked(id, subscriber, cursor));
  }
}
