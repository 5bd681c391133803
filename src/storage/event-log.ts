/**
 * A durable log of all streams: what a broker remembers over a restart, and where readers go whose events have
 * left the ring. The broker appends, waits for the commit, and only then shows and acknowledges (I4).
 *
 * Written so that what is behind it may be one file or many machines: runs are appended with the seqs that they
 * have, a commit is all or nothing, and a log that cannot commit now keeps what was staged and is asked again.
 */

import type { ProducerRecords, RecordKind } from '../core/producer-record.js';
import type { StreamConfig } from '../core/retention.js';

/** A stream's name within the log: a number below 2^32 that no two streams share while either has events there. */
export type LogId = number;

/** A stream as it is created. */
export interface NewStream {
  readonly id: LogId;
  readonly name: string;
  readonly epoch: string;
  readonly config: StreamConfig;
}

/** A stream as the log has it after a start. */
export interface LoggedStream extends NewStream {
  readonly closed: boolean;
  /** Lowest seq that can be read; head + 1 when there is none. */
  readonly floor: number;
  readonly head: number;
  /** Bytes of frames from the floor on, rounded up to what the log keeps in one piece. */
  readonly bytes: number;
  /** Its named subscribers, and what each has. */
  readonly acked: ReadonlyMap<string, string>;
  /** What is remembered of who published, where there is something. */
  readonly producers?: ProducerRecords;
}

/** Consecutive events as they go on the wire, whole frames back to back. */
export interface LogRun {
  readonly firstSeq: number;
  readonly lastSeq: number;
  readonly frames: Uint8Array;
}

/** Why a log cannot do what it was asked. */
export type LogFault =
  /** No space is left; reading goes on, and commits succeed again when there is some. */
  | 'full'
  /** The medium failed in another way; the next commit may succeed. */
  | 'io'
  /** The medium failed in such a way that no commit succeeds before the process has started again. */
  | 'broken';

export class LogError extends Error {
  override readonly name = 'LogError';
  readonly fault: LogFault;
  /** When the log was asked, on the clock of `performance`, milliseconds: how it stood later this does not say. */
  readonly askedAtMs: number;

  constructor(fault: LogFault, message: string, options: ErrorOptions & { askedAtMs?: number } = {}) {
    super(message, options);
    this.fault = fault;
    this.askedAtMs = options.askedAtMs ?? performance.now();
  }
}

/** What is stored is not what was written. Never served; the message says what, where and what to do. */
export class LogCorruption extends Error {
  override readonly name = 'LogCorruption';
}

/**
 * What is remembered of who published to a stream (contract 3.4). Staged, and committed with the events that are staged
 * beside it: a record and the events that it tells of must never be there one without the other.
 */
export interface ProducerLog {
  /** Takes the place of what was remembered of the same. @param records back to back. */
  put(id: LogId, kind: RecordKind, records: Uint8Array): void;
  /** @param digests of those that are forgotten, back to back. */
  drop(id: LogId, kind: RecordKind, digests: Uint8Array): void;
}

/** The writing side. Single writer: the log thread. All but `commit` and `sync` only stage. */
export interface EventLog {
  /**
   * All streams, as the last commit left them. Once, to its end, before anything else is asked.
   *
   * @throws {LogCorruption}
   */
  load(): Iterable<LoggedStream>;
  /** An id for a new stream; each call gives another. */
  nextId(): LogId;
  create(stream: NewStream): void;
  /**
   * Appends the run that follows what was appended before; the log copies what it needs.
   *
   * @param nowMs when it was appended, which is what the age of its events is counted from.
   */
  append(id: LogId, run: LogRun, nowMs: number): void;
  /**
   * What a named subscriber of a stream has.
   *
   * @param cursor null: the subscriber is forgotten.
   */
  acknowledge(id: LogId, subscriber: string, cursor: string | null): void;
  readonly producers: ProducerLog;
  /** Nothing is appended after this. */
  close(id: LogId): void;
  /** The stream and its events go. */
  remove(id: LogId): void;
  /** Events below `seq` cannot be read any more, and go. */
  trim(id: LogId, seq: number): void;
  /**
   * Trims what the stream's retention does not ask to keep (contract 2.1), nor named subscribers hold (contract 3.6),
   * counted from what was committed.
   */
  applyRetention(id: LogId, nowMs: number): void;
  /**
   * Whether the committed events of a stream that its named subscribers have yet to acknowledge are more than it keeps:
   * publishers have to wait for them (contract 3.6).
   */
  isHeld(id: LogId): boolean;
  /**
   * Trims the oldest blocks of all streams until they hold no more than `bytesMax`, or only the last block of each is
   * left, which stays. A bounded number at a call: the next goes on.
   *
   * @returns the streams whose floors moved.
   */
  trimOldest(bytesMax: number): Iterable<LogId>;
  /**
   * Makes all that was staged durable, all of it or none. What was trimmed or removed is deleted in the background,
   * some with each commit: while `hasPendingDeletes`, a commit has something to do.
   *
   * @throws {LogError} what was staged stays so, and the next commit tries again.
   * @throws {LogCorruption}
   */
  commit(): Promise<void> | void;
  readonly hasPendingDeletes: boolean;
  /**
   * Where commits do not wait for the medium: resolves when it has all that was committed before the call.
   *
   * @throws {LogError}
   */
  sync(): Promise<void>;
  /** Lowest seq of a stream that can be read; head + 1 when there is none. Moves as soon as it is staged. */
  floor(id: LogId): number;
  /** Bytes of frames from the floor to the newest committed event, rounded as in {@link LoggedStream}. */
  bytes(id: LogId): number;
  /** The same of all streams together. */
  keptBytes(): number;
  /** When the newest of all events was appended, as it was told then; 0 when there is none. */
  newestAtMs(): number;
  /** Bytes that the log occupies. */
  sizeBytes(): number;
  /** What was staged and not committed is dropped. */
  dispose(): Promise<void>;
}

/** What is read of a stream. */
export interface ReadRange {
  readonly afterSeq: number;
  /** Lowest seq that can be read, as the writer says; what lies below may still be stored. */
  readonly floor: number;
  /** Highest seq that may be shown: what lies beyond may be stored, and its commit not announced (I4). */
  readonly committed: number;
  /** How many bytes of frames, but at least one frame. */
  readonly bytesMax: number;
}

/** The reading side. Any number of readers, on any thread of the writer's process. */
export interface EventLogReader {
  /**
   * The frames after a seq, in memory of their own. Null when the event after it is below the floor or not committed
   * yet, or the stream is gone.
   *
   * @throws {LogCorruption} when it has to be there and is not as it was written.
   */
  read(id: LogId, range: ReadRange): LogRun | null;
  dispose(): Promise<void>;
}
