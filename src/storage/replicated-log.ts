/**
 * A log that several brokers share, on machines of its own. Unlike an `EventLog` it is not one writer's: what an append
 * becomes is known when the log says so, because another broker may have been first.
 *
 * An entry names the one that it follows, and **it counts only if that is the newest of its stream that counts**. Of two that
 * follow the same one the first in the log counts, for all who read it, and the other is as if it were not there. The
 * log may refuse those that would not count, but it need not.
 *
 * Named subscribers have entries of their own, of which the same holds as of those of a stream: nobody who publishes has to
 * wait for who acknowledges.
 *
 * Positions are those of the log as a whole: numbers from 1 that go up and are never given twice.
 */

import type { LogEntry } from './jetstream/log-entry.js';
import type { SubscriberEntry } from './jetstream/subscriber-entry.js';

/** An entry where it lies. */
export interface StoredEntry {
  readonly stream: string;
  readonly at: number;
  readonly entry: LogEntry;
  readonly body: Uint8Array;
}

/**
 * In the place of a subscriber's name, which has no `@` in it: all who read the stream. When somebody did is all that their
 * entries say, so of those only the newest is of use.
 */
export const READERS = '@readers';

/** A named subscriber of a stream, or all its readers. */
export interface SubscriberKey {
  readonly stream: string;
  readonly subscriber: string;
}

/** An entry of a named subscriber where it lies. */
export interface StoredSubscriber extends SubscriberKey {
  readonly at: number;
  readonly entry: SubscriberEntry;
}

/** The entries of named subscribers. What is said of those of streams in `ReplicatedLog` holds for these. */
export interface SubscriberLog {
  append(key: SubscriberKey, entry: SubscriberEntry, after: number): Promise<number | null>;
  newest(key: SubscriberKey): Promise<StoredSubscriber | null>;
  next(key: SubscriberKey, from: number): Promise<StoredSubscriber | null>;
  /** @param subscriber null: all of the stream. */
  dropBelow(stream: string, subscriber: string | null, at: number): Promise<void>;
}

/** Which log it is, and how far it goes. */
export interface LogExtent {
  /** Another log has another: one that was deleted and made anew too. */
  readonly identity: string;
  /** Position of its newest entry. */
  readonly lastAt: number;
}

/** What the log occupies on each of its machines, of what it may at most; null: nobody says. */
export interface LogUsage {
  readonly bytes: number;
  readonly bytesMax: number | null;
}

export interface Follower {
  /** The newest entry of each stream first, of which some may not count, and then every new one in the order of the log. */
  received(stored: StoredEntry): void;
  /** Those of named subscribers, among the others and as they. */
  receivedSubscriber(stored: StoredSubscriber): void;
  /** All that was there has been received. Once. */
  upToDate(): void;
  /** Entries may be missing from here on. Once; nothing is received any more. */
  lost(reason: string): void;
  /** The log holds what no broker wrote. Once; nothing is received any more. */
  failed(error: Error): void;
}

export interface ReplicatedLog {
  /** Resolves with the log as it is; makes it where it is not there. @throws {LogError} */
  open(): Promise<LogExtent>;
  /**
   * Appends an entry. Resolves when it is as safe as the log makes anything.
   *
   * @param after position of the newest entry of the stream that is known, whether it counts or not; 0: none. Null: it is
   *   appended also where the log has a newer one, so that others see who wants to append.
   * @returns its position; null: the log has a newer one, and nothing was appended.
   * @throws {LogError} `full`: nothing was appended. Otherwise nobody knows whether it was, or will be.
   */
  append(stream: string, entry: LogEntry, body: Uint8Array, after: number | null): Promise<number | null>;
  /** The newest entry of a stream, whether it counts or not. @throws {LogError} */
  newest(stream: string): Promise<StoredEntry | null>;
  /** The first entry of a stream that lies at a position or after it. @throws {LogError} */
  next(stream: string, from: number): Promise<StoredEntry | null>;
  /** Who wrote the entry at a position, of a stream or a named subscriber; null: there is none any more. @throws {LogError} */
  writerAt(at: number): Promise<string | null>;
  /** Deletes the entries of a stream before a position. @throws {LogError} */
  dropBelow(stream: string, at: number): Promise<void>;
  readonly subscribers: SubscriberLog;
  /** @throws {LogError} */
  usage(): Promise<LogUsage>;
  /**
   * Resolves when most of its machines have agreed on something since the call. One that is cut off from the others, and has
   * not noticed yet, answers whatever is asked from what it has, but this.
   * @throws {LogError}
   */
  confirm(): Promise<void>;
  /** @param lastAt how far the log goes: all up to there is received before it is up to date. @throws {LogError} @returns what ends it. */
  follow(lastAt: number, follower: Follower): Promise<() => void>;
  /** Whether it refuses all appends that would not count, and that it is to compare. Once it is open. */
  readonly isExact: boolean;
  /** Bytes that the body of an entry may have. */
  readonly bodyBytesMax: number;
  close(): Promise<void>;
}
