/**
 * The event log without a medium under it: for simulations and tests. Does what the durable one does, commits that fail
 * or are slow included.
 */

import { assert } from '#gapless/assert.js';
import { lowestHeld } from '#gapless/core/acknowledge.js';
import { type Cursor, parseCursor } from '#gapless/core/cursor.js';
import {
  type EventLog,
  type EventLogReader,
  LogError,
  type LogFault,
  type LoggedStream,
  type LogId,
  type LogRun,
  type NewStream,
  type ProducerLog,
  type ReadRange,
} from '#gapless/storage/event-log.js';
import { collectRun } from '#gapless/storage/lmdb/collect-run.js';
import type { BlockStart } from '#gapless/storage/lmdb/store-keys.js';
import { floorBelowHeld, isFullOfHeld } from '#gapless/storage/retention-floor.js';
import { MemoryProducers } from './memory-producers.js';

interface StoredRun extends LogRun, BlockStart {
  readonly writtenAtMs: number;
}

/** A stream as it is committed. */
interface StoredStream extends NewStream {
  closed: boolean;
  floor: number;
  head: number;
  endPosition: number;
  readonly acked: Map<string, string>;
  /** The last one stays, whatever the floor. */
  runs: StoredRun[];
}

/** What outlives a log, as a disk would: open another log on it after the first was disposed of. */
export class MemoryMedium {
  readonly streams = new Map<LogId, StoredStream>();
  readonly producers = new MemoryProducers();
}

/** A stream as it is staged. */
interface Tail extends NewStream {
  closed: boolean;
  floor: number;
  head: number;
}

/** Single writer. */
export class MemoryLog implements EventLog {
  readonly hasPendingDeletes = false;
  readonly producers: ProducerLog = {
    put: (id, kind, records) => {
      const copy = records.slice();
      this.#change(id, () => this.#medium.producers.put(id, kind, copy));
    },
    drop: (id, kind, digests) => this.#change(id, () => this.#medium.producers.drop(id, kind, digests)),
  };
  readonly #medium: MemoryMedium;
  readonly #tails = new Map<LogId, Tail>();
  #staged: (() => void)[] = [];
  #committing = false;
  #nextId = 1;
  #failures = 0;
  #fault: LogFault = 'io';
  #wait: (() => Promise<void>) | null = null;

  constructor(medium: MemoryMedium) {
    this.#medium = medium;
  }

  /** The next `count` commits fail. */
  failCommits(count: number, fault: LogFault): void {
    this.#failures = count;
    this.#fault = fault;
  }

  /** Each commit waits for a promise of `wait`, before it succeeds or fails; null ends it. */
  slowCommits(wait: (() => Promise<void>) | null): void {
    this.#wait = wait;
  }

  *load(): Iterable<LoggedStream> {
    for (const stream of this.#medium.streams.values()) {
      const { id, name, epoch, config, closed, floor, head } = stream;
      this.#tails.set(id, { id, name, epoch, config, closed, floor, head });
      this.#nextId = Math.max(this.#nextId, id + 1);
      const acked = new Map(stream.acked);
      const bytes = keptBytes(stream, floor);
      const loaded = { id, name, epoch, config, closed, floor, head, bytes, acked };
      const producers = this.#medium.producers.recordsOf(id);
      yield producers === null ? loaded : { ...loaded, producers };
    }
  }

  nextId(): LogId {
    return this.#nextId++;
  }

  create({ id, name, epoch, config }: NewStream): void {
    assert(!this.#tails.has(id) && !this.#medium.streams.has(id), 'I3: an id is not given to two streams');
    this.#nextId = Math.max(this.#nextId, id + 1);
    this.#tails.set(id, { id, name, epoch, config, closed: false, floor: 1, head: 0 });
    this.#stage(() => {
      const stream = { id, name, epoch, config, closed: false, floor: 1, head: 0, endPosition: 0, runs: [] };
      this.#medium.streams.set(id, { ...stream, acked: new Map() });
    });
  }

  append(id: LogId, { firstSeq, lastSeq, frames }: LogRun, nowMs: number): void {
    const tail = this.#tail(id);
    assert(firstSeq === tail.head + 1 && lastSeq >= firstSeq, 'I1: what is appended follows what was');
    assert(!tail.closed, 'nothing is appended to a closed stream');
    tail.head = lastSeq;
    const copy = new Uint8Array(frames);
    this.#change(id, (stream) => {
      const run = { firstSeq, lastSeq, frames: copy, openedAtMs: nowMs, writtenAtMs: nowMs };
      stream.runs.push({ ...run, position: stream.endPosition });
      stream.endPosition += copy.length;
      stream.head = lastSeq;
      dropBelowFloor(stream);
    });
  }

  acknowledge(id: LogId, subscriber: string, cursor: string | null): void {
    this.#tail(id);
    this.#change(id, ({ acked }) => {
      if (cursor === null) acked.delete(subscriber);
      else acked.set(subscriber, cursor);
    });
  }

  close(id: LogId): void {
    this.#tail(id).closed = true;
    this.#change(id, (stream) => {
      stream.closed = true;
    });
  }

  remove(id: LogId): void {
    this.#tail(id);
    this.#tails.delete(id);
    this.#stage(() => {
      this.#medium.streams.delete(id);
      this.#medium.producers.remove(id);
    });
  }

  trim(id: LogId, seq: number): void {
    const tail = this.#tail(id);
    const floor = Math.min(seq, tail.head + 1);
    if (floor <= tail.floor) return;
    tail.floor = floor;
    this.#change(id, (stream) => {
      stream.floor = floor;
      dropBelowFloor(stream);
    });
  }

  applyRetention(id: LogId, nowMs: number): void {
    const { floor, config } = this.#tail(id);
    const stream = this.#medium.streams.get(id);
    if (stream === undefined || floor > stream.head) return;
    const { runs, head, endPosition } = stream;
    const at = runs.findLastIndex(({ firstSeq }) => firstSeq <= floor);
    const block = runs[at];
    const last = runs.at(-1);
    assert(block !== undefined && last !== undefined, 'what is at the floor is stored');
    const kept = { floor, block, head, endPosition, writtenAtMs: last.writtenAtMs };
    this.trim(
      id,
      floorBelowHeld(config, kept, nowMs, heldSeqOf(stream, floor), () => runs.slice(at + 1)),
    );
  }

  isHeld(id: LogId): boolean {
    const { floor, config } = this.#tail(id);
    const stream = this.#medium.streams.get(id);
    if (stream === undefined) return false;
    const seq = heldSeqOf(stream, floor);
    const block = stream.runs.findLast(({ firstSeq }) => firstSeq <= seq);
    return seq <= stream.head && block !== undefined && isFullOfHeld(config, stream, { seq, block });
  }

  trimOldest(bytesMax: number): Set<LogId> {
    const trimmed = new Set<LogId>();
    while (this.keptBytes() > bytesMax) {
      const oldest = this.#oldestBlock();
      if (oldest === null) break;
      this.trim(oldest.id, oldest.next.firstSeq);
      trimmed.add(oldest.id);
    }
    return trimmed;
  }

  commit(): Promise<void> | void {
    assert(!this.#committing, 'one commit at a time');
    if (this.#wait === null) return this.#commitNow(this.#takeStaged());
    return this.#commitLater(this.#takeStaged(), this.#wait());
  }

  async sync(): Promise<void> {}

  floor(id: LogId): number {
    return this.#tail(id).floor;
  }

  bytes(id: LogId): number {
    const { floor } = this.#tail(id);
    const stream = this.#medium.streams.get(id);
    return stream === undefined ? 0 : keptBytes(stream, floor);
  }

  keptBytes(): number {
    let bytes = 0;
    for (const id of this.#tails.keys()) bytes += this.bytes(id);
    return bytes;
  }

  newestAtMs(): number {
    let newest = 0;
    for (const { runs } of this.#medium.streams.values())
      newest = Math.max(newest, runs.at(-1)?.writtenAtMs ?? 0);
    return newest;
  }

  sizeBytes(): number {
    let bytes = 0;
    for (const { runs } of this.#medium.streams.values()) {
      for (const { frames } of runs) bytes += frames.length;
    }
    return bytes;
  }

  async dispose(): Promise<void> {
    this.#staged = [];
  }

  #tail(id: LogId): Tail {
    const tail = this.#tails.get(id);
    assert(tail !== undefined, 'the log knows the streams that it is asked about');
    return tail;
  }

  /** The oldest run that can go, with the one after it; null when there are only last ones. */
  #oldestBlock(): { id: LogId; block: StoredRun; next: StoredRun } | null {
    let oldest: { id: LogId; block: StoredRun; next: StoredRun } | null = null;
    for (const { id, floor } of this.#tails.values()) {
      const runs = this.#medium.streams.get(id)?.runs ?? [];
      const at = runs.findLastIndex(({ firstSeq }) => firstSeq <= floor);
      const block = runs[at];
      const next = runs[at + 1];
      if (block === undefined || next === undefined) continue;
      if (oldest === null || block.openedAtMs < oldest.block.openedAtMs) oldest = { id, block, next };
    }
    return oldest;
  }

  #stage(change: () => void): void {
    this.#staged.push(change);
  }

  #change(id: LogId, change: (stream: StoredStream) => void): void {
    this.#stage(() => {
      const stream = this.#medium.streams.get(id);
      assert(stream !== undefined, 'a stream is created before it is changed');
      change(stream);
    });
  }

  #takeStaged(): (() => void)[] {
    const staged = this.#staged;
    this.#staged = [];
    return staged;
  }

  #commitNow(staged: (() => void)[]): void {
    if (this.#failures > 0) {
      this.#failures--;
      this.#staged = [...staged, ...this.#staged];
      throw new LogError(this.#fault, 'told to fail');
    }
    for (const change of staged) change();
  }

  async #commitLater(staged: (() => void)[], waited: Promise<void>): Promise<void> {
    this.#committing = true;
    try {
      await waited;
    } finally {
      this.#committing = false;
    }
    this.#commitNow(staged);
  }
}

/** Any number of readers. */
export class MemoryReader implements EventLogReader {
  readonly #medium: MemoryMedium;

  constructor(medium: MemoryMedium) {
    this.#medium = medium;
  }

  read(id: LogId, range: ReadRange): LogRun | null {
    const stream = this.#medium.streams.get(id);
    const { afterSeq, floor } = range;
    const seq = afterSeq + 1;
    if (stream === undefined || seq < Math.max(floor, stream.floor) || seq > stream.head) return null;
    const at = stream.runs.findLastIndex(({ firstSeq }) => firstSeq <= seq);
    return collectRun(stream.runs.slice(at), range);
  }

  async dispose(): Promise<void> {}
}

function heldSeqOf({ config, epoch, acked }: StoredStream, floor: number): number {
  if (config.overflow === 'evict') return Number.POSITIVE_INFINITY;
  const cursors = [...acked.values()].map((text) => parseCursor(text) as Cursor);
  return lowestHeld(cursors, { epoch, floor });
}

function dropBelowFloor(stream: StoredStream): void {
  const { runs, floor } = stream;
  const gone = runs.findIndex((run, index) => run.lastSeq >= floor || index === runs.length - 1);
  if (gone > 0) runs.splice(0, gone);
}

function keptBytes({ runs, head, endPosition }: StoredStream, floor: number): number {
  if (floor > head) return 0;
  const block = runs.findLast(({ firstSeq }) => firstSeq <= floor);
  return endPosition - (block?.position ?? endPosition);
}
