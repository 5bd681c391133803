/**
 * Decides, within an append, whether a producer's publish is its next, and writes down that it was (contract 3.4). All
 * under the lock of the stream, so that of two edges with the same publish one appends, and the other sees that it did.
 */

import { assert } from '../assert.js';
import { judgePublish, type ProducerPosition, PUBLISH_DUPLICATE, PUBLISH_NEXT } from '../core/producer.js';
import type { RecordKind } from '../core/producer-record.js';
import { ENTRY_RESERVED, isForgettable, reserveEntry, tableOf } from './producer-memory.js';
import { NONE, type ProducerTable } from './producer-table.js';
import type { Lack } from './ring-growth.js';
import type { Rings } from './rings.js';

/** Which publish of whom a request says that it is. */
export interface ProducerClaim extends ProducerPosition {
  readonly kind: RecordKind;
  /** Of the id or the key: DIGEST_BYTES of it. */
  readonly digest: Int32Array;
}

/** Single user: one appender. */
export class ClaimJudge {
  /** Where the publish stands, after PUBLISH_DUPLICATE. */
  firstSeq = 0;
  lastSeq = 0;
  /** The newest publish of the same producer; null when none is known. */
  newest: ProducerPosition | null = null;

  readonly #rings: Rings;
  #table: ProducerTable | null = null;
  #entry = NONE;

  constructor(rings: Rings) {
    this.#rings = rings;
  }

  /** @returns a constant of core/producer.ts. */
  judge(slot: number, claim: ProducerClaim, nowMs: number): number {
    const table = tableOf(this.#rings, slot, claim.kind);
    const entry = table === null ? NONE : table.find(claim.digest);
    this.#table = table;
    this.#entry = entry;
    this.newest = null;
    if (table !== null && entry !== NONE && !isForgettable(this.#rings, slot, table, { entry, nowMs })) {
      this.newest = table.positionOf(entry);
    }
    const judged = judgePublish(claim, this.newest);
    if (judged === PUBLISH_DUPLICATE && table !== null) {
      const place = table.placeOf(entry, claim.seq);
      this.firstSeq = place.firstSeq;
      this.lastSeq = place.lastSeq;
    }
    return judged;
  }

  /** After PUBLISH_NEXT, before anything is changed. @returns a constant of producer-memory.ts; `lack` is as there. */
  reserve(slot: number, claim: ProducerClaim, nowMs: number, lack: Lack): number {
    if (this.#entry !== NONE) return ENTRY_RESERVED;
    const reserved = reserveEntry(this.#rings, slot, claim.kind, { nowMs, lack });
    this.#table = tableOf(this.#rings, slot, claim.kind);
    return reserved;
  }

  /** After `reserve`: the publish was appended. */
  record(claim: ProducerClaim, at: { firstSeq: number; lastSeq: number; nowMs: number }): void {
    const table = this.#table;
    assert(table !== null, 'P2: an entry is reserved before the append');
    assert(judgePublish(claim, this.newest) === PUBLISH_NEXT, 'only the next of its producer is appended');
    const { firstSeq, lastSeq, nowMs } = at;
    const change = { epoch: claim.epoch, seq: claim.seq, usedAtMs: nowMs, firstSeq, lastSeq };
    if (this.#entry === NONE) table.insert(claim.digest, change);
    else table.update(this.#entry, change);
  }
}
