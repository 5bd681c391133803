/**
 * Group commit: reads what the edges appended out of the rings, commits it with all that came in meanwhile, and
 * only then moves `committed` and tells those who read (I4). While a commit waits for the medium the next group
 * gathers in the rings, so groups grow by themselves under load.
 *
 * Single user: the log thread.
 */

import { assert } from '../../assert.js';
import { RECORD_KINDS } from '../../core/producer-record.js';
import { closeLogged, commitStream } from '../../ring/lifecycle.js';
import { LOG_FAILED, LOG_FULL, LOG_HEALTHY, LogCounter, type LogStatus } from '../../ring/log-status.js';
import { changesSince, forgetProducers, hasTables } from '../../ring/producer-memory.js';
import { FrameRun, READ_OK, RingReader } from '../../ring/read.js';
import type { Rings, StreamHandle } from '../../ring/rings.js';
import { LOG_EDGE, type Wakes } from '../../ring/wake-queue.js';
import { type EventLog, LogError, type LogId, type NewStream } from '../../storage/event-log.js';
import { BLOCK_BYTES_MAX } from '../../storage/lmdb/pack-runs.js';

/** Frames read from a ring at a time: a block's worth, so that the log need not cut them. */
const RUN_BYTES_MAX = BLOCK_BYTES_MAX;
/** Frames in one commit; what is more waits in the rings for the next. */
const COMMIT_BYTES_MAX = 16 * 1024 * 1024;
/** Producers, and keys, that a stream forgets at a time. */
const FORGOTTEN_MAX = 1000;

export interface CommitLoopOptions {
  readonly rings: Rings;
  readonly wakes: Wakes;
  readonly log: EventLog;
  readonly status: LogStatus;
  /** What the events of all streams may take in the log, bytes; 0 = no such limit. */
  readonly logBytesMax: number;
  /** Unix time, milliseconds. */
  readonly nowMs: () => number;
  /** Seconds since some moment, for durations. */
  readonly nowSeconds: () => number;
}

interface CommittedStream {
  readonly handle: StreamHandle;
  readonly id: LogId;
  /** Newest seq that was handed to the log. */
  appendedSeq: number;
  /** Whether events came since retention was last applied. */
  grown: boolean;
  readonly ages: boolean;
  /** Whether publishers wait for its named subscribers (contract 3.6). */
  readonly rejects: boolean;
}

/** What one commit holds, as it stands when that begins: what is staged while it is under way goes with the next. */
interface CommitGroup {
  readonly positions: readonly {
    readonly stream: CommittedStream;
    readonly seq: number;
    readonly logFloorSeq: number;
  }[];
  /** What happens when it succeeds. */
  readonly done: readonly (() => void)[];
  readonly events: number;
  readonly bytes: number;
}

export class CommitLoop {
  readonly #options: CommitLoopOptions;
  readonly #reader: RingReader;
  readonly #run = new FrameRun(RUN_BYTES_MAX);
  readonly #bySlot = new Map<number, CommittedStream>();
  readonly #byId = new Map<LogId, CommittedStream>();
  /** Slots that were taken from the queue and not read to the end. */
  readonly #active = new Set<number>();
  /** Streams whose positions change with the next commit. */
  readonly #staged = new Set<CommittedStream>();
  /** What happens when the next commit succeeds. */
  #afterCommit: (() => void)[] = [];
  #stagedEvents = 0;
  #stagedBytes = 0;

  constructor(options: CommitLoopOptions) {
    this.#options = options;
    this.#reader = new RingReader(options.rings);
  }

  /** Takes a stream up that the log already has, at its head. */
  adopt(handle: StreamHandle, logged: { id: LogId; head: number; ages: boolean; rejects: boolean }): void {
    const { id, head, ages, rejects } = logged;
    const stream = { handle, id, appendedSeq: head, grown: true, ages, rejects };
    this.#bySlot.set(handle.slot, stream);
    this.#byId.set(id, stream);
  }

  create(handle: StreamHandle, stream: Omit<NewStream, 'id'>, done: (id: LogId) => void): void {
    const id = this.#options.log.nextId();
    this.#options.log.create({ id, ...stream });
    const { retention, overflow } = stream.config;
    this.adopt(handle, { id, head: 0, ages: retention.ageMs > 0, rejects: overflow === 'reject' });
    this.#afterCommit.push(() => done(id));
  }

  /** With the next commit the log knows what a named subscriber has. */
  acknowledge(
    { slot, subscriber, cursor }: { slot: number; subscriber: string; cursor: string | null },
    done: () => void,
  ): void {
    const stream = this.#bySlot.get(slot);
    if (stream === undefined) return done();
    this.#options.log.acknowledge(stream.id, subscriber, cursor);
    this.#afterCommit.push(done);
    if (!stream.rejects) return;
    // What nobody holds any more may go, and publishers need wait no longer.
    stream.grown = true;
    this.#staged.add(stream);
  }

  /** After the last event is committed, so that nobody is told of an end that a crash would undo. */
  close(slot: number, done: () => void): void {
    const stream = this.#bySlot.get(slot);
    if (stream === undefined) return done();
    this.#read(stream, Number.POSITIVE_INFINITY);
    this.#options.log.close(stream.id);
    this.#afterCommit.push(() => {
      closeLogged(this.#options.rings, stream.handle);
      this.#options.wakes.announce(slot, -1);
      done();
    });
  }

  remove(slot: number, done: () => void): void {
    const stream = this.#bySlot.get(slot);
    if (stream === undefined) return done();
    this.#bySlot.delete(slot);
    this.#byId.delete(stream.id);
    this.#staged.delete(stream);
    this.#options.log.remove(stream.id);
    this.#afterCommit.push(done);
  }

  /** Has the log drop what retention does not ask to keep, and forget publishers whose time is over. Now and then. */
  applyRetention(): void {
    const { log, nowMs } = this.#options;
    for (const stream of this.#bySlot.values()) {
      this.#forgetProducers(stream);
      if (!stream.grown && !stream.ages) continue;
      stream.grown = false;
      const floor = log.floor(stream.id);
      log.applyRetention(stream.id, nowMs());
      if (log.floor(stream.id) !== floor) this.#staged.add(stream);
    }
    this.#options.status.set(LogCounter.sizeBytes, log.sizeBytes());
    this.#options.status.set(LogCounter.keptBytes, log.keptBytes());
  }

  /**
   * One commit, of all that is there.
   * @returns false when there was nothing to do.
   * @throws {LogError} what was staged stays so; call again later.
   */
  async commit(): Promise<boolean> {
    const { log, status, nowSeconds } = this.#options;
    this.#takeQueued();
    this.#readActive();
    this.#makeRoom();
    if (this.#staged.size === 0 && this.#afterCommit.length === 0 && !log.hasPendingDeletes) return false;
    const startedAt = nowSeconds();
    const group = this.#takeGroup();
    try {
      await log.commit();
    } catch (error) {
      this.#putBack(group);
      if (!(error instanceof LogError)) throw error;
      status.fault = error.fault === 'full' ? LOG_FULL : LOG_FAILED;
      status.add(LogCounter.failedCommits, 1);
      throw error;
    }
    status.fault = LOG_HEALTHY;
    status.observeCommit(nowSeconds() - startedAt);
    this.#announce(group);
    return true;
  }

  /**
   * What comes in beyond the limit has the oldest go in the same commit. Publishers are never refused for it: where very
   * many small blocks have to go, the log is above its limit for some commits.
   */
  #makeRoom(): void {
    const { log, logBytesMax, status } = this.#options;
    // At the start the streams have yet to be taken up: their floors move in their slots too.
    if (logBytesMax === 0 || this.#byId.size === 0) return;
    const before = log.keptBytes();
    for (const id of log.trimOldest(logBytesMax - this.#stagedBytes)) {
      const stream = this.#byId.get(id);
      assert(stream !== undefined, 'the log has the streams that it was given');
      this.#staged.add(stream);
    }
    status.add(LogCounter.limitTrimmedBytes, before - log.keptBytes());
  }

  #forgetProducers(stream: CommittedStream): void {
    const { rings, log, nowMs } = this.#options;
    if (!hasTables(rings, stream.handle.slot)) return;
    for (const kind of RECORD_KINDS) {
      const bounds = { nowMs: nowMs(), countMax: FORGOTTEN_MAX };
      const digests = forgetProducers(rings, stream.handle, kind, bounds);
      if (digests.length === 0) continue;
      log.producers.drop(stream.id, kind, digests);
      this.#staged.add(stream);
    }
  }

  #takeQueued(): void {
    const { wakes } = this.#options;
    for (let slot = wakes.take(LOG_EDGE); slot >= 0; slot = wakes.take(LOG_EDGE)) this.#active.add(slot);
  }

  #readActive(): void {
    for (const slot of this.#active) {
      const stream = this.#bySlot.get(slot);
      if (stream !== undefined && !this.#read(stream, COMMIT_BYTES_MAX)) return;
      this.#active.delete(slot);
      this.#options.wakes.settle(slot, LOG_EDGE);
      // Once more: an append just before found the bit set, and did not queue the slot again (W1).
      if (stream !== undefined) this.#read(stream, Number.POSITIVE_INFINITY);
    }
  }

  /**
   * Hands a stream's new events to the log, always up to the end of a batch: where the head stood at one moment. A
   * crash must not leave part of a batch (contract 3.1).
   * @returns false when there are more, but `bytesMax` are staged in all.
   */
  #read(stream: CommittedStream, bytesMax: number): boolean {
    while (this.#stagedBytes < bytesMax) {
      // Head and records of one moment: what is committed of a producer and of its events is the same (P2).
      const changes = changesSince(this.#options.rings, stream.handle, stream.appendedSeq);
      if (changes === null || changes.headSeq === stream.appendedSeq) return true;
      if (!this.#appendUpTo(stream, changes.headSeq)) return true;
      for (const kind of RECORD_KINDS) {
        this.#options.log.producers.put(stream.id, kind, changes.records[kind]);
      }
    }
    return false;
  }

  /** @returns false when the stream was removed meanwhile, and what was handed over goes with it. */
  #appendUpTo(stream: CommittedStream, headSeq: number): boolean {
    const { log, nowMs } = this.#options;
    while (stream.appendedSeq < headSeq) {
      const { handle, appendedSeq } = stream;
      const found = this.#reader.readUncommitted(handle, appendedSeq, headSeq, RUN_BYTES_MAX, this.#run);
      if (found !== READ_OK) return false;
      log.append(stream.id, this.#run, nowMs());
      stream.appendedSeq = this.#run.lastSeq;
      stream.grown = true;
      this.#staged.add(stream);
      this.#stagedEvents += this.#run.count;
      this.#stagedBytes += this.#run.frames.length;
    }
    return true;
  }

  #takeGroup(): CommitGroup {
    const { log } = this.#options;
    const group = {
      positions: [...this.#staged].map((stream) => ({
        stream,
        seq: stream.appendedSeq,
        logFloorSeq: log.floor(stream.id),
      })),
      done: this.#afterCommit,
      events: this.#stagedEvents,
      bytes: this.#stagedBytes,
    };
    this.#afterCommit = [];
    this.#staged.clear();
    this.#stagedEvents = 0;
    this.#stagedBytes = 0;
    return group;
  }

  /** The commit failed: the next one holds this as well. */
  #putBack({ positions, done, events, bytes }: CommitGroup): void {
    for (const { stream } of positions) if (this.#byId.has(stream.id)) this.#staged.add(stream);
    this.#afterCommit = [...done, ...this.#afterCommit];
    this.#stagedEvents += events;
    this.#stagedBytes += bytes;
  }

  #announce({ positions, done, events, bytes }: CommitGroup): void {
    const { rings, wakes, log, status } = this.#options;
    for (const { stream, seq, logFloorSeq } of positions) {
      const isHeld = stream.rejects && this.#byId.has(stream.id) && log.isHeld(stream.id);
      commitStream(rings, stream.handle, { seq, logFloorSeq, isHeld });
      wakes.announce(stream.handle.slot, -1);
    }
    status.add(LogCounter.committedEvents, events);
    status.add(LogCounter.committedBytes, bytes);
    status.set(LogCounter.keptBytes, log.keptBytes());
    for (const finish of done) finish();
  }
}
