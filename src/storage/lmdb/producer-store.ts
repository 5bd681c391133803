/**
 * What is remembered of publishers, in the store: a record each, by stream and digest.
 *
 * PRODUCER VALUE, little-endian
 *   offset size type field
 *        0    4 u32  magic     PRODUCER_MAGIC
 *        4    4 u32  checksum  CRC-32 of the key and the record
 *        8    n u8[] record    core/producer-record.ts
 *
 * The key is in the checksum, so that no record passes for another stream's.
 */

import { crc32 } from 'node:zlib';
import { assert } from '../../assert.js';
import { concatBytes } from '../../core/concat-bytes.js';
import {
  DIGEST_BYTES,
  eachRecord,
  KEY,
  PRODUCER,
  type ProducerRecords,
  RECORD_BYTES,
  type RecordKind,
} from '../../core/producer-record.js';
import { LogCorruption, type LogId, type ProducerLog } from '../event-log.js';
import type { LmdbStore } from './lmdb-store.js';
import { idOfKey, kindOfKey, producerKey } from './store-keys.js';

/** "GPR1". */
const PRODUCER_MAGIC = 0x31_52_50_47;
const HEADER_BYTES = 8;

/** Single user: the writer of the store. */
export class ProducerStore implements ProducerLog {
  readonly #store: LmdbStore;
  /** By stream and key: the value, or null for one that goes. */
  readonly #staged = new Map<LogId, Map<string, Buffer | null>>();

  constructor(store: LmdbStore) {
    this.#store = store;
  }

  put(id: LogId, kind: RecordKind, records: Uint8Array): void {
    for (const record of eachRecord(records, kind)) {
      const key = producerKey(id, kind, record.subarray(0, DIGEST_BYTES));
      this.#stage(id, key, encodeValue(key, record));
    }
  }

  drop(id: LogId, kind: RecordKind, digests: Uint8Array): void {
    assert(digests.length % DIGEST_BYTES === 0, 'digests are whole');
    for (let at = 0; at < digests.length; at += DIGEST_BYTES) {
      this.#stage(id, producerKey(id, kind, digests.subarray(at, at + DIGEST_BYTES)), null);
    }
  }

  /** Nothing of a removed stream is written any more. */
  removeStream(id: LogId): void {
    this.#staged.delete(id);
  }

  /** Records that the next commit writes or deletes. */
  get stagedCount(): number {
    let count = 0;
    for (const staged of this.#staged.values()) count += staged.size;
    return count;
  }

  /** Writes what is staged. To be called in a transaction. */
  write(): void {
    for (const staged of this.#staged.values()) {
      for (const [key, value] of staged) {
        if (value === null) this.#store.producers.removeSync(keyFrom(key));
        else this.#store.producers.putSync(keyFrom(key), value);
      }
    }
  }

  /** What was staged is committed. */
  settle(): void {
    this.#staged.clear();
  }

  /**
   * All records, by stream.
   *
   * @throws {LogCorruption}
   */
  load(): Map<LogId, ProducerRecords> {
    const found = new Map<LogId, [Uint8Array[], Uint8Array[]]>();
    for (const { key, value } of this.#store.producers.getRange({})) {
      const id = idOfKey(key);
      let ofStream = found.get(id);
      if (ofStream === undefined) {
        ofStream = [[], []];
        found.set(id, ofStream);
      }
      const kind = kindOfKey(key);
      ofStream[kind].push(decodeValue(key, value, kind, `${this.#store.path}, stream ${id}`));
    }
    return new Map(
      [...found].map(([id, records]) => [
        id,
        { producers: concatBytes(records[PRODUCER]), keys: concatBytes(records[KEY]) },
      ]),
    );
  }

  #stage(id: LogId, key: Buffer, value: Buffer | null): void {
    let staged = this.#staged.get(id);
    if (staged === undefined) {
      staged = new Map();
      this.#staged.set(id, staged);
    }
    staged.set(key.toString('latin1'), value);
  }
}

function encodeValue(key: Buffer, record: Uint8Array): Buffer {
  const value = Buffer.allocUnsafe(HEADER_BYTES + record.length);
  value.writeUInt32LE(PRODUCER_MAGIC, 0);
  value.writeUInt32LE(checksum(key, record), 4);
  value.set(record, HEADER_BYTES);
  return value;
}

/** @param where names the stream for whoever has to find it. */
function decodeValue(key: Buffer, value: Buffer, kind: RecordKind, where: string): Uint8Array {
  const record = value.subarray(HEADER_BYTES);
  const isRight =
    value.length === HEADER_BYTES + RECORD_BYTES[kind] &&
    value.readUInt32LE(0) === PRODUCER_MAGIC &&
    value.readUInt32LE(4) === checksum(key, record);
  if (!isRight) {
    throw new LogCorruption(
      `${where}: the checksum of a producer's record does not match: restore the file from a copy`,
    );
  }
  return record;
}

function checksum(key: Buffer, record: Uint8Array): number {
  return crc32(record, crc32(key));
}

function keyFrom(text: string): Buffer {
  return Buffer.from(text, 'latin1');
}
