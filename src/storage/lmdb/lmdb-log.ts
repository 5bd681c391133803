/**
 * The event log in one LMDB file. What is staged is written in one transaction: a crash leaves all of it or none.
 */

import { statSync } from 'node:fs';
import { assert } from '../../assert.js';
import {
  type EventLog,
  LogError,
  type LoggedStream,
  type LogId,
  type LogRun,
  type NewStream,
} from '../event-log.js';
import { floorBelowHeld, isFullOfHeld } from '../retention-floor.js';
import { Staging } from '../staging.js';
import { BLOCK_HEADER_BYTES, BlockEncoder } from './block.js';
import { BlockDeletes } from './block-deletes.js';
import { asLogError, keysFrom, type LmdbStore, streamTexts, syncStore, writeStore } from './lmdb-store.js';
import { blockAt, lastFrames, TailLoader } from './load-tail.js';
import { OldestBlocks } from './oldest-blocks.js';
import type { PackedBlock } from './pack-runs.js';
import { ProducerStore } from './producer-store.js';
import { type BlockStart, blockKey, ID_MAX, startOfKey, streamKey } from './store-keys.js';
import { type Need, StoreRoom } from './store-room.js';
import { readAcked, stageAcked, writeAcked } from './store-subscribers.js';
import { decodeRecord, encodeRecord, type LivingRecord, type StreamRecord } from './stream-record.js';
import {
  heldSeqOf,
  keptBytes,
  keptOf,
  newTail,
  packStaged,
  type StreamTail,
  settle,
  settleFloor,
} from './stream-tail.js';
import { Tombstones } from './tombstones.js';

/** Blocks that one commit deletes beside what it writes, and for each block that it writes: or they would pile up. */
const DELETES_MAX = 256;
const DELETES_PER_BLOCK = 2;
/** The same on a full medium, to make room: there is little room for the deletion itself. */
const DELETES_FULL_MAX = 32;
/** Blocks that go at once where the log as a whole is too large: more than a commit writes, but for small ones. */
const TRIMS_MAX = 1024;

/** Single writer: the log thread. */
export class LmdbLog implements EventLog {
  readonly producers: ProducerStore;
  readonly #store: LmdbStore;
  readonly #syncEachCommit: boolean;
  readonly #tails = new Map<LogId, StreamTail>();
  /** Living streams with something staged. */
  readonly #staged = new Set<LogId>();
  /** The frames of what is staged. */
  readonly #staging = new Staging();
  readonly #encoder = new BlockEncoder();
  readonly #tombstones: Tombstones;
  readonly #blocks = new OldestBlocks();
  readonly #deletes: BlockDeletes;
  readonly #room: StoreRoom;
  /** Those under way, which use the store on another thread. */
  readonly #syncs = new Set<Promise<void>>();
  #nextId = 1;

  constructor(store: LmdbStore, syncEachCommit: boolean) {
    this.#store = store;
    this.#syncEachCommit = syncEachCommit;
    this.producers = new ProducerStore(store);
    this.#deletes = new BlockDeletes(store, this.#tails);
    this.#room = new StoreRoom(store);
    this.#tombstones = new Tombstones(store);
  }

  *load(): Iterable<LoggedStream> {
    const tails = new TailLoader(this.#store);
    const producers = this.producers.load();
    for (const { id, text, subscribers } of streamTexts(this.#store)) {
      const where = `${this.#store.path}, stream ${id}`;
      const record = decodeRecord(id, text, where);
      this.#nextId = id + 1;
      if ('removed' in record) {
        tails.skip(id);
        this.#deletes.add(id);
        continue;
      }
      const tail = tails.load(record);
      readAcked(tail, subscribers, where);
      this.#tails.set(id, tail);
      this.#blocks.update(tail);
      // Some below the floor may have been left by the last run, and are found when their turn comes.
      if ((tail.floorBlock ?? tail.last)?.position !== 0) this.#deletes.add(id);
      const { name, epoch, config, closed, floor } = record;
      const { head, acked } = tail;
      const bytes = keptBytes(tail);
      const stream = { id, name, epoch, config, closed, floor, head, bytes, acked: new Map(acked) };
      const remembered = producers.get(id);
      yield remembered === undefined ? stream : { ...stream, producers: remembered };
    }
  }

  nextId(): LogId {
    assert(this.#nextId <= ID_MAX, 'ids have 32 bits');
    return this.#nextId++;
  }

  create({ id, name, epoch, config }: NewStream): void {
    assert(id > 0 && id <= ID_MAX, 'ids have 32 bits');
    assert(!this.#tails.has(id) && !this.#deletes.has(id), 'I3: an id is not given to two streams');
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
    tail.runs.push({ firstSeq, lastSeq, frames: this.#staging.copy(run.frames), writtenAtMs: nowMs });
    this.#staged.add(id);
  }

  acknowledge(id: LogId, subscriber: string, cursor: string | null): void {
    stageAcked(this.#tail(id), subscriber, cursor);
    this.#staged.add(id);
  }

  close(id: LogId): void {
    const tail = this.#tail(id);
    this.#update(tail, { ...tail.record, closed: true });
  }

  remove(id: LogId): void {
    const tail = this.#tail(id);
    this.#blocks.remove(tail);
    this.#tails.delete(id);
    this.#staged.delete(id);
    this.producers.removeStream(id);
    this.#tombstones.add(tail);
    this.#deletes.add(id);
  }

  trim(id: LogId, seq: number): void {
    const tail = this.#tail(id);
    const floor = Math.min(seq, tail.head + 1);
    if (floor <= tail.record.floor) return;
    tail.floorBlock = blockAt(this.#store, tail, floor);
    this.#blocks.update(tail);
    this.#update(tail, { ...tail.record, floor });
    this.#deletes.add(id);
  }

  applyRetention(id: LogId, nowMs: number): void {
    const tail = this.#tail(id);
    const kept = keptOf(tail);
    if (kept === null) return;
    const { config } = tail.record;
    const after = (): Iterable<BlockStart> => this.#startsAfter(id, kept.block);
    this.trim(id, floorBelowHeld(config, kept, nowMs, heldSeqOf(tail), after));
  }

  isHeld(id: LogId): boolean {
    const tail = this.#tail(id);
    const kept = keptOf(tail);
    const seq = heldSeqOf(tail);
    if (kept === null || seq > kept.head) return false;
    const block = blockAt(this.#store, tail, seq);
    return block !== null && isFullOfHeld(tail.record.config, kept, { seq, block });
  }

  trimOldest(bytesMax: number): Set<LogId> {
    const trimmed = new Set<LogId>();
    for (let left = TRIMS_MAX; left > 0 && this.#blocks.bytes > bytesMax; ) {
      const tail = this.#blocks.oldest;
      if (tail === undefined) break;
      const most = { bytes: this.#blocks.bytes - bytesMax, blocks: left };
      const { floor, blocks } = this.#blocks.passOldest(most, (id, block) => this.#startsAfter(id, block));
      this.trim(tail.id, floor);
      trimmed.add(tail.id);
      left -= blocks;
    }
    return trimmed;
  }

  commit(): void {
    const isWriting = this.#staged.size > 0 || this.#tombstones.size > 0 || this.producers.stagedCount > 0;
    if (!isWriting && !this.#deletes.isPending) return;
    const planned = new Map<StreamTail, PackedBlock[]>();
    for (const id of this.#staged) planned.set(this.#tail(id), packStaged(this.#tail(id)));
    let deleted: LogId[] = [];
    try {
      const need = this.#needOf(planned);
      this.#room.require(need, { mayUseReserve: !isWriting });
      this.#transaction(() => {
        for (const [tail, blocks] of planned) this.#write(tail, blocks);
        this.producers.write();
        this.#tombstones.write();
        deleted = this.#deletes.deleteSome(need.deletes);
      });
    } catch (cause) {
      const error = asLogError(cause, this.#store.path);
      if (error instanceof LogError && error.fault === 'full') this.#makeRoom();
      throw error;
    }
    for (const [tail, blocks] of planned) {
      settle(tail, blocks);
      this.#blocks.update(tail);
    }
    this.#staged.clear();
    this.#staging.clear();
    this.#tombstones.settle();
    this.producers.settle();
    this.#deletes.settle(deleted);
  }

  get hasPendingDeletes(): boolean {
    return this.#deletes.isPending;
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

  keptBytes(): number {
    return this.#blocks.bytes;
  }

  newestAtMs(): number {
    let newest = 0;
    for (const { last } of this.#tails.values()) newest = Math.max(newest, last?.writtenAtMs ?? 0);
    return newest;
  }

  sizeBytes(): number {
    return statSync(this.#store.path).size;
  }

  async dispose(): Promise<void> {
    await Promise.all(this.#syncs);
    this.#room.close();
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
    writeStore(this.#store, write, { sync: this.#syncEachCommit });
  }

  #needOf(planned: ReadonlyMap<StreamTail, readonly PackedBlock[]>): Need {
    const blocks: number[] = [];
    for (const packed of planned.values()) {
      for (const { framesBytes } of packed) blocks.push(BLOCK_HEADER_BYTES + framesBytes);
    }
    let puts = blocks.length + planned.size + this.#tombstones.puts + this.producers.stagedCount;
    for (const { ackedStaged } of planned.keys()) puts += ackedStaged.size;
    const deletes = this.#deletes.isPending ? DELETES_MAX + DELETES_PER_BLOCK * blocks.length : 0;
    return { blocks, puts, deletes };
  }

  /** Writes what is staged of a stream. */
  #write(tail: StreamTail, packed: readonly PackedBlock[]): void {
    const { id, record } = tail;
    if (record !== tail.stored) this.#putRecord(record);
    writeAcked(this.#store, tail);
    for (const block of packed) {
      const parts = block.mergesLast ? [lastFrames(this.#store, tail), ...block.parts] : block.parts;
      this.#store.blocks.putSync(blockKey(id, block), this.#encoder.encode({ ...block, id }, parts));
    }
  }

  #putRecord(record: StreamRecord): void {
    this.#store.streams.putSync(streamKey(record.id), encodeRecord(record));
  }

  /**
   * On a full medium, what was staged cannot be written, but what may go can still be deleted: the space serves a later
   * commit. Only floors move with it; anything else waits for its turn.
   */
  #makeRoom(): void {
    const moved: StreamTail[] = [];
    let deleted: LogId[] = [];
    try {
      const need = { blocks: [], puts: DELETES_FULL_MAX + this.#tombstones.puts, deletes: DELETES_FULL_MAX };
      this.#room.require(need, { mayUseReserve: true });
      this.#transaction(() => {
        for (const tail of this.#deletes.living(DELETES_FULL_MAX)) {
          if (tail.stored === null || tail.stored.floor === tail.record.floor) continue;
          this.#putRecord({ ...tail.stored, floor: tail.record.floor });
          moved.push(tail);
        }
        this.#tombstones.write();
        deleted = this.#deletes.deleteSome(DELETES_FULL_MAX);
      });
      for (const tail of moved) settleFloor(tail);
      this.#tombstones.settle();
      this.#deletes.settle(deleted);
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
      this.#room.require({ blocks: [], puts: 1, deletes: 0 }, { mayUseReserve: true });
      this.#transaction(() => this.#putRecord(stored));
      return;
    }
  }

  *#startsAfter(id: LogId, { firstSeq }: BlockStart): Generator<BlockStart> {
    for (const key of keysFrom(this.#store, id, { from: firstSeq + 1 })) yield startOfKey(key);
  }
}
