import {
  DIGEST_BYTES,
  eachRecord,
  KEY,
  PRODUCER,
  type ProducerRecords,
  RECORD_KINDS,
  type RecordKind,
} from '#gapless/core/producer-record.js';
import type { LogId } from '#gapless/storage/event-log.js';

/** What is remembered of who published, as it is committed. */
export class MemoryProducers {
  /** By stream and kind, and then by digest. */
  readonly #records = new Map<string, Map<string, Uint8Array>>();

  put(id: LogId, kind: RecordKind, records: Uint8Array): void {
    const ofStream = this.#of(id, kind);
    for (const record of eachRecord(records, kind)) {
      ofStream.set(digestText(record.subarray(0, DIGEST_BYTES)), record);
    }
  }

  drop(id: LogId, kind: RecordKind, digests: Uint8Array): void {
    const ofStream = this.#of(id, kind);
    for (let at = 0; at < digests.length; at += DIGEST_BYTES) {
      ofStream.delete(digestText(digests.subarray(at, at + DIGEST_BYTES)));
    }
  }

  remove(id: LogId): void {
    for (const kind of RECORD_KINDS) this.#records.delete(`${id} ${kind}`);
  }

  recordsOf(id: LogId): ProducerRecords | null {
    const all = (kind: RecordKind) => new Uint8Array(Buffer.concat([...this.#of(id, kind).values()]));
    const records = { producers: all(PRODUCER), keys: all(KEY) };
    return records.producers.length + records.keys.length === 0 ? null : records;
  }

  #of(id: LogId, kind: RecordKind): Map<string, Uint8Array> {
    const name = `${id} ${kind}`;
    const ofStream = this.#records.get(name) ?? new Map<string, Uint8Array>();
    this.#records.set(name, ofStream);
    return ofStream;
  }
}

function digestText(digest: Uint8Array): string {
  return Buffer.from(digest).toString('latin1');
}
