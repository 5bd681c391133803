/**
 * The event log in one LMDB file. What is staged is written in one transaction: a crash leaves all of it or none.
 */

import { statSync } from 'node:fs';
import { join } from 'node:path';
import { assert } from '../assert.js';
import { encodeBlock } from './block.js';
import { blockOf } from './block-scan.js';
import {
  type EventLog,
  LogError,
  type LoggedStream,
  type LogId,
  type LogRun,
  type NewStream,
} from './event-log.js';
import { asLogError, keysFrom, type LmdbStore, openStore, streamTexts, syncStore } from './lmdb-store.js';
import { blockAt, TailLoader } from './load-tail.js';
import { type PackedBlock, packRuns } from './pack-runs.js';
import { blockSpanMsMax, retentionFloor } from './retention-floor.js';
import { checkBlocks, checkStore } from './store-check.js';
import { STORE_FILE, syncDirectory } from './store-file.js';
import {
  type BlockStart,
  blockKey,
  blocksEnd,
  blocksFrom,
  ID_MAX,
  startOfKey,
  streamKey,
} from './store-keys.js';
import { decodeRecord, encodeRecord, type LivingRecord, type StreamRecord } from './stream-record.js';
import { keptBytes, keptOf, newTail, type StreamTail, settle, settleFloor } from './stream-tail.js';

/** What one commit deletes in blocks, and looks at in streams: deleting goes on in the background, a little with each. */
const DELETES_MAX = 512;

/* Flags of a transaction; the first two are what the store does by itself. */
const ABORTABLE = 1;
const SYNCHRONOUS_COMMIT = 2;
const NO_SYNC_FLUSH = 0x1_0000;

export interface LmdbLogOptions {
  /** An existing directory, locked for this process. */
  readonly directory: string;
  /** Whether a commit returns only when the medium has it; if not, `sync` is called from time to time. */
  readonly syncEachCommit: boolean;
}

/**
 * Opens the store of a data directory, or makes it.
 *
 * @throws {LogCorruption} when what is there cannot be trusted.
 * @throws {LogError}
 */
export function openLmdbLog({ directory, syncEachCommit }: LmdbLogOptions): LmdbLog {
  checkStore(join(directory, STORE_FILE));
  const log = new LmdbLog(openStore(directory, { readOnly: false }), syncEachCommit);
  syncDirectory(directory);
  return log;
}

/** Single writer: the log thread. */
export class LmdbLog implements EventLog {
  readonly #store: LmdbStore;
  readonly #transactionFlags: number;
  readonly #tails = new Map<LogId, StreamTail>();
  /** Living streams with something staged. */
  readonly #staged = new Set<LogId>();
  /** Streams that were removed and have no tombstone yet. */
  readonly #removed = new Set<LogId>();
  /** Streams with blocks below their floor, and removed ones: their blocks go bit by bit. */
  readonly #deleting = new Set<LogId>();
  /** Those under way, which use the store on another thread. */
  readonly #syncs = new Set<Promise<void>>();
  #nextId = 1;

  constructor(store: LmdbStore, syncEachCommit: boolean) {
    this.#store = store;
    this.#transactionFlags = ABORTABLE | SYNCHRONOUS_COMMIT | (syncEachCommit ? 0 : NO_SYNC_FLUSH);
  }

  *load(): Iterable<LoggedStream> {
    const tails = new TailLoader(this.#store);
    for (const { id, text } of streamTexts(this.#store)) {
      const record = decodeRecord(id, text, `${this.#store.path}, stream ${id}`);
      this.#nextId = id + 1;
      if ('removed' in record) {
        tails.skip(id);
        this.#deleting.add(id);
        continue;
      }
      const tail = tails.load(record);
      this.#tails.set(id, tail);
      // Some below the floor may have been left by the last run, and are found when their turn comes.
      if ((tail.floorBlock ?? tail.last)?.position !== 0) this.#deleting.add(id);
      const { name, epoch, config, closed, floor } = record;
      yield { id, name, epoch, config, closed, floor, head: tail.head, bytes: keptBytes(tail) };
    }
  }

  nextId(): LogId {
    assert(this.#nextId <= ID_MAX, 'ids have 32 bits');
    return this.#nextId++;
  }

  create({ id, name, epoch, config }: NewStream): void {
    assert(id > 0 && id <= ID_MAX, 'ids have 32 bits');
    assert(!this.#tails.has(id) && !this.#deleting.has(id), 'I3: an id is not given to two streams');
    this.#nextId = Math.max(this.#nextId, id + 1);
    this.#tails.set(id, newTail({ id, name, epoch, config, closed: false, floor: 1 }));
    this.#staged.add(id);
  }

  append(id: LogId, run: LogRun, nowMs: number): void {
    const tail = this.#tail(id);
    assert(
      run.firstSeq === tail.head + 1 && run.lastSeq >= run.firstSeq,
      'I1: what is appended follows what was',
    );
    assert(!tail.record.closed, 'nothing is appended to a closed stream');
    const { firstSeq, lastSeq } = run;
    tail.head = lastSeq;
    tail.runs.push({ firstSeq, lastSeq, frames: new Uint8Array(run.frames), writtenAtMs: nowMs });
    this.#staged.add(id);
  }

  close(id: LogId): void {
    const tail = this.#tail(id);
    this.#update(tail, { ...tail.record, closed: true });
  }

  remove(id: LogId): void {
    this.#tail(id);
    this.#tails.delete(id);
    this.#staged.delete(id);
    this.#removed.add(id);
    this.#deleting.add(id);
  }

  trim(id: LogId, seq: number): void {
    const tail = this.#tail(id);
    const floor = Math.min(seq, tail.head + 1);
    if (floor <= tail.record.floor) return;
    tail.floorBlock = blockAt(this.#store, tail, floor);
    this.#update(tail, { ...tail.record, floor });
    this.#deleting.add(id);
  }

  applyRetention(id: LogId, nowMs: number): void {
    const tail = this.#tail(id);
    const kept = keptOf(tail);
    if (kept === null) return;
    const { retention } = tail.record.config;
    this.trim(
      id,
      retentionFloor(retention, kept, nowMs, () => this.#startsAfter(id, kept.block)),
    );
  }

  commit(): void {
    if (this.#staged.size === 0 && this.#removed.size === 0 && this.#deleting.size === 0) return;
    const written = new Map<StreamTail, PackedBlock[]>();
    const deleted: LogId[] = [];
    try {
      this.#transaction(() => {
        for (const id of this.#staged) {
          const tail = this.#tail(id);
          written.set(tail, this.#write(tail));
        }
        this.#writeTombstones();
        this.#deleteSome(deleted);
      });
    } catch (cause) {
      const error = asLogError(cause, this.#store.path);
      if (error instanceof LogError && error.fault === 'full') this.#makeRoom();
      throw error;
    }
    for (const [tail, blocks] of written) settle(tail, blocks);
    this.#staged.clear();
    this.#removed.clear();
    for (const id of deleted) this.#deleting.delete(id);
  }

  get hasPendingDeletes(): boolean {
    return this.#deleting.size > 0;
  }

  sync(): Promise<void> {
    const syncing = syncStore(this.#store);
    const settled = syncing.catch(() => undefined).finally(() => this.#syncs.delete(settled));
    this.#syncs.add(settled);
    return syncing;
  }

  floor(id: LogId): number {
    return this.#tail(id).record.floor;
  }

  bytes(id: LogId): number {
    return keptBytes(this.#tail(id));
  }

  sizeBytes(): number {
    return statSync(this.#store.path).size;
  }

  async dispose(): Promise<void> {
    await Promise.all(this.#syncs);
    await this.#store.root.close();
  }

  #tail(id: LogId): StreamTail {
    const tail = this.#tails.get(id);
    assert(tail !== undefined, 'the log knows the streams that it is asked about');
    return tail;
  }

  #update(tail: StreamTail, record: LivingRecord): void {
    tail.record = record;
    this.#staged.add(tail.id);
  }

  #transaction(write: () => void): void {
    this.#store.root.transactionSync(write, this.#transactionFlags);
  }

  /** Writes what is staged of a stream. */
  #write(tail: StreamTail): PackedBlock[] {
    const { id, record } = tail;
    if (record !== tail.stored) this.#putRecord(record);
    const packed = packRuns(tail.last, tail.runs, blockSpanMsMax(record.config.retention));
    for (const block of packed) {
      const parts = block.mergesLast ? [this.#lastFrames(tail), ...block.parts] : block.parts;
      this.#store.blocks.putSync(blockKey(id, block), encodeBlock({ ...block, id }, parts));
    }
    return packed;
  }

  #putRecord(record: StreamRecord): void {
    this.#store.streams.putSync(streamKey(record.id), encodeRecord(record));
  }

  #lastFrames({ id, last }: StreamTail): Buffer {
    assert(last !== null, 'a block is merged into one that is there');
    const block = blockOf(this.#store, blockKey(id, last));
    assert(block?.lastSeq === last.lastSeq, 'I3: a stream ends in the store where its writer says');
    return block.frames();
  }

  #writeTombstones(): void {
    for (const id of this.#removed) this.#putRecord({ id, removed: true });
  }

  /**
   * Deletes blocks that lie wholly below their stream's floor, all of a removed stream. The last one of a living stream
   * stays (I3).
   *
   * @param finished the streams that have none left.
   */
  #deleteSome(finished: LogId[]): void {
    let left = DELETES_MAX;
    for (const id of this.#deleting) {
      const keys = [...this.#store.blocks.getKeys({ ...this.#deletable(id), limit: left })] as Buffer[];
      const [firstKey] = keys;
      const lastKey = keys.at(-1);
      if (firstKey !== undefined && lastKey !== undefined) checkBlocks(this.#store.path, firstKey, lastKey);
      for (const key of keys) this.#store.blocks.removeSync(key);
      left -= keys.length + 1;
      if (left <= 0) return;
      finished.push(id);
      if (!this.#tails.has(id)) this.#store.streams.removeSync(streamKey(id));
    }
  }

  #deletable(id: LogId): { start: Buffer; end: Buffer } {
    const start = blocksFrom(id, 0);
    const tail = this.#tails.get(id);
    if (tail === undefined) return { start, end: blocksEnd(id) };
    return { start, end: blocksFrom(id, (tail.floorBlock ?? tail.last)?.firstSeq ?? 0) };
  }

  /**
   * On a full medium, what was staged cannot be written, but what may go can still be deleted: the space serves the
   * next commit. Only floors move with it; anything else waits for its turn.
   */
  #makeRoom(): void {
    const moved: StreamTail[] = [];
    const deleted: LogId[] = [];
    try {
      this.#transaction(() => {
        for (const id of this.#deleting) {
          const tail = this.#tails.get(id);
          if (tail?.stored == null || tail.stored.floor === tail.record.floor) continue;
          this.#putRecord({ ...tail.stored, floor: tail.record.floor });
          moved.push(tail);
        }
        this.#writeTombstones();
        this.#deleteSome(deleted);
      });
      for (const tail of moved) settleFloor(tail);
      this.#removed.clear();
      for (const id of deleted) this.#deleting.delete(id);
      this.#turnPages();
    } catch (cause) {
      const error = asLogError(cause, this.#store.path);
      if (!(error instanceof LogError)) throw error;
      // There is no room for this either, and the caller is about to hear of it.
    }
  }

  /** Pages that one commit freed are used by the one after the next: this is the next. It changes nothing. */
  #turnPages(): void {
    for (const { stored } of this.#tails.values()) {
      if (stored === null) continue;
      this.#transaction(() => this.#putRecord(stored));
      return;
    }
  }

  *#startsAfter(id: LogId, { firstSeq }: BlockStart): Generator<BlockStart> {
    for (const key of keysFrom(this.#store, id, { from: firstSeq + 1 })) yield startOfKey(key);
  }
}
