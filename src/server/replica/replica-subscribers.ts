/**
 * What this broker has of the named subscribers in a replicated log: the newest entry of each that counts, which it hands
 * on to `NamedSubscribers` under the epoch that their stream has; and of all readers of a stream, which `StreamUse` asks
 * for. Entries come from the one who follows the log, from this broker's own appends, and from reads where it cannot be told
 * whether one counts.
 *
 * Single owner: the main thread.
 */

import type { NamedSubscribers } from '../../broker/named-subscribers.js';
import { type Cursor, parseCursor } from '../../core/cursor.js';
import { LogError } from '../../storage/event-log.js';
import {
  READERS,
  type ReplicatedLog,
  type StoredSubscriber,
  type SubscriberKey,
} from '../../storage/replicated-log.js';
import { contradicts, namesPassedOver } from './contradiction.js';
import { LostSubscribers } from './lost-subscribers.js';
import { findNewest } from './newest-entry.js';
import type { Replica } from './replica.js';
import type { ReplicaStream } from './replica-stream.js';
import type { WriteNames } from './write-names.js';

export interface ReplicaSubscribersOptions {
  readonly log: ReplicatedLog;
  readonly replica: Pick<Replica, 'find' | 'catchUp'>;
  readonly named: Pick<NamedSubscribers, 'take'>;
  readonly names: WriteNames;
  /** Unix time, milliseconds. */
  readonly nowMs: () => number;
}

/** The newest entry that counts, and where the newest of all lies, which were all looked at. */
export interface KnownSubscriber {
  readonly stored: StoredSubscriber;
  readonly tailAt: number;
}

/**
 * How long the last entry stays of a subscriber that was forgotten, or whose stream was removed: for brokers that were away,
 * and so that what comes late follows something that was followed already.
 */
const TOMBSTONE_MS = 60_000;
/** Old entries of a subscriber that lie in the log before they are deleted. */
const OLD_ENTRIES_MAX = 16;

export class ReplicaSubscribers {
  /** Position of the newest entry of any subscriber. */
  lastAt = 0;
  /** Something showed that the log may have lost what this broker has taken up of them. */
  isSuspected = false;
  readonly #options: ReplicaSubscribersOptions;
  /** By stream and subscriber. */
  readonly #known = new Map<string, Map<string, KnownSubscriber>>();
  /** Those that are being caught up with, by their keys, and up to where at least. */
  readonly #behind = new Map<string, number>();
  /** Those that are forgotten, or whose stream is, and still in the log; and since when, Unix time in milliseconds. */
  readonly #tombstones = new Map<string, { readonly stored: StoredSubscriber; readonly sinceMs: number }>();
  readonly #lost: LostSubscribers;
  /** Own writes of each subscriber since the log was told to delete what is old. */
  readonly #oldEntries = new Map<string, number>();
  #seen: Set<string> | null = null;
  /** All that the log has up to this position was received. */
  #followedAt = 0;
  /** Newest position of what came since following began anew, in which not all is there before the end. */
  #receivedAt = 0;

  constructor(options: ReplicaSubscribersOptions) {
    this.#options = options;
    const { log, replica, names } = options;
    this.#lost = new LostSubscribers({ log, replica, names, subscribers: this });
  }

  /** The newest entry that counts of each. */
  newest(): StoredSubscriber[] {
    return this.#all().map(({ stored }) => stored);
  }

  find({ stream, subscriber }: SubscriberKey): KnownSubscriber | undefined {
    return this.#known.get(stream)?.get(subscriber);
  }

  /** Whether all that the log has of them up to a position was taken up. */
  knowsUpTo(at: number): boolean {
    return this.#followedAt >= at && this.#behind.size === 0;
  }

  /** Something was received, of a stream or a named subscriber. */
  followed(at: number): void {
    if (this.#seen === null) this.#followedAt = at;
    else this.#receivedAt = at;
  }

  /** A stream is there, perhaps anew: what is known of its subscribers is theirs. */
  opened(stream: ReplicaStream): void {
    for (const { stored } of this.#known.get(stream.name)?.values() ?? []) this.#show(stored);
  }

  /** A stream is no more, and its subscribers go with it. */
  removed({ name }: ReplicaStream): void {
    for (const { stored } of this.#known.get(name)?.values() ?? []) this.#bury(stored, this.#options.nowMs());
  }

  /**
   * Takes up all that the log has of one at the moment of the call, or newer; where it has nothing, the one is forgotten.
   * @throws {LogError}
   */
  async catchUp(key: SubscriberKey): Promise<void> {
    const before = this.find(key);
    const found = await this.#newest(key);
    if (found !== null) this.#take(found);
    else if (before !== undefined && this.find(key) === before) this.#forget(before.stored);
  }

  /**
   * As `catchUp`, for somebody who asks. Where the log does not have what it had, it may be another one by now, and what is
   * known here would have to be written down there: that is found out by following it anew.
   * @throws {LogError} then as well
   */
  async look(key: SubscriberKey): Promise<void> {
    const before = this.find(key);
    const found = await this.#newest(key);
    if (found !== null) return this.#take(found);
    if (before === undefined || this.find(key) !== before) return;
    // That it was forgotten is said for a while only, and of a stream that is no more nothing is.
    if (before.stored.entry.acked === null || this.#isOrphan(before.stored))
      return this.#forget(before.stored);
    throw new LogError('io', 'the entries of a named subscriber are not in the log');
  }

  /** An entry that this broker wrote is in the log: resolves with whether it is the newest that counts. @throws {LogError} */
  async appended(stored: StoredSubscriber, after: number): Promise<boolean> {
    // Nothing can be missing in between.
    if (this.#options.log.isExact || stored.at === after + 1) this.#take({ stored, tailAt: stored.at });
    else await this.catchUp(stored);
    const isNewest = this.find(stored)?.stored.entry.writer === stored.entry.writer;
    if (isNewest) this.#dropOld(stored);
    return isNewest;
  }

  /** Following begins anew. @param hasLost the log has lost some of what was in it, or may have. */
  begin(hasLost: boolean): void {
    this.#seen = new Set();
    this.#receivedAt = 0;
    this.#behind.clear();
    if (!hasLost) {
      // What was passed over may have been lost since, and its position given again.
      for (const ofStream of this.#known.values())
        for (const [name, { stored }] of ofStream) ofStream.set(name, { stored, tailAt: stored.at });
      return;
    }
    this.#followedAt = 0;
    this.isSuspected = false;
    for (const { stored } of this.#all()) {
      const isBuried = this.#tombstones.get(keyOf(stored))?.stored === stored;
      if (stored.entry.acked === null || !isBuried) this.#lost.add(stored);
    }
    this.#known.clear();
    this.#tombstones.clear();
    this.lastAt = 0;
  }

  /** @returns what reads the rest, before which it cannot be taken up; null: it is. */
  received(stored: StoredSubscriber): (() => Promise<void>) | null {
    const key = keyOf(stored);
    const known = this.find(stored);
    const isBeginning = this.#seen !== null;
    this.#seen?.add(key);
    if (known !== undefined && isContradicted(known, stored)) return () => this.#suspect();
    if (stored.at <= (known?.tailAt ?? 0)) {
      // While nothing was followed, something else may have taken the place of what is known.
      const isOther = isBeginning && known !== undefined && stored.at < known.stored.at;
      return isOther ? () => this.#checkThere(known) : null;
    }
    const { previous } = stored.entry;
    // What names none begins anew after all before it has gone from the log, or came too late to count: that is read, also of
    // the last in the log.
    const follows =
      known === undefined ? previous === 0 && !isBeginning : previous > 0 && previous <= known.stored.at;
    // Entries between it and the last that was looked at may not have been received.
    if (!follows || this.#behind.has(key) || (isBeginning && known !== undefined))
      return this.#whenRead(stored);
    // One that follows another than the newest does not count.
    const isLate = known !== undefined && previous < known.stored.at;
    const newest = isLate ? known.stored : stored;
    this.#take({ stored: newest, tailAt: stored.at });
    return null;
  }

  /** All that the log had when following began was received, and the streams are there. @throws {LogError} */
  async end(): Promise<void> {
    const seen = this.#seen;
    this.#seen = null;
    this.#followedAt = Math.max(this.#followedAt, this.#receivedAt);
    await this.#lost.restore();
    for (const known of this.#all()) {
      const { stored } = known;
      if (seen?.has(keyOf(stored)) === false) {
        await this.#checkThere(known);
        await this.catchUp(stored);
      } else if (this.#isOrphan(stored)) {
        this.#bury(stored, this.#options.nowMs());
      }
    }
  }

  /** What was forgotten a while ago goes from the log. Call it each second. */
  sweep(): void {
    const oldMs = this.#options.nowMs() - TOMBSTONE_MS;
    for (const [key, { stored, sinceMs }] of this.#tombstones) {
      if (sinceMs > oldMs) continue;
      this.#tombstones.delete(key);
      if (this.find(stored)?.stored === stored) ignoreFailure(this.#dropForgotten(stored));
    }
  }

  /**
   * Its stream may have been made meanwhile and not be taken up yet; and the log may have lost it, and given its position to
   * what somebody wrote since: they are looked for first.
   */
  async #dropForgotten(stored: StoredSubscriber): Promise<void> {
    if (stored.entry.acked !== null) {
      await this.#options.replica.catchUp(stored.stream);
      if (!this.#isOrphan(stored)) return;
    }
    const newest = await this.#newest(stored);
    if (newest !== null && newest.stored.entry.writer !== stored.entry.writer) return;
    if (this.find(stored)?.stored === stored) this.#forget(stored);
    if (newest === null) return;
    // What came later and does not count would seem to, left there alone.
    await this.#options.log.subscribers.dropBelow(stored.stream, stored.subscriber, newest.tailAt + 1);
  }

  #newest(key: SubscriberKey): Promise<KnownSubscriber | null> {
    const { log } = this.#options;
    return findNewest({
      newest: () => log.subscribers.newest(key),
      next: (from) => log.subscribers.next(key, from),
    });
  }

  /** Whether its stream is not there, or has been made anew before or after this was written. */
  #isOrphan({ stream, entry }: StoredSubscriber): boolean {
    return this.#options.replica.find(stream)?.entry.origin !== entry.origin;
  }

  #all(): KnownSubscriber[] {
    return [...this.#known.values()].flatMap((known) => [...known.values()]);
  }

  #take(known: KnownSubscriber): void {
    const { stored, tailAt } = known;
    const { stream, subscriber } = stored;
    this.lastAt = Math.max(this.lastAt, tailAt);
    if (tailAt <= (this.find(stored)?.tailAt ?? 0)) return;
    let ofStream = this.#known.get(stream);
    if (ofStream === undefined) {
      ofStream = new Map();
      this.#known.set(stream, ofStream);
    }
    ofStream.set(subscriber, known);
    if (stored.entry.acked === null) this.#bury(stored, stored.entry.atMs);
    // As long as not all was received, streams are missing.
    else if (this.#seen === null && this.#isOrphan(stored)) this.#bury(stored, this.#options.nowMs());
    this.#show(stored);
  }

  #bury(stored: StoredSubscriber, sinceMs: number): void {
    const key = keyOf(stored);
    if (this.#tombstones.get(key)?.stored !== stored) this.#tombstones.set(key, { stored, sinceMs });
  }

  /** Entries of this subscriber are missing here: none that comes is taken up before they were read. @returns reads them. */
  #whenRead(stored: StoredSubscriber): () => Promise<void> {
    const key = keyOf(stored);
    const known = this.find(stored);
    this.#behind.set(key, stored.at);
    return async () => {
      if (known !== undefined) await this.#checkThere(known);
      // The first entry that follows one that counts, counts as well.
      const first = await this.#options.log.subscribers.next(stored, stored.entry.previous + 1);
      if (first?.at === stored.at) this.#take({ stored, tailAt: stored.at });
      else await this.catchUp(stored);
      if (this.#behind.get(key) === stored.at) this.#behind.delete(key);
    };
  }

  /** @throws {LogError} what was known is not in the log, and was not let go for what came later */
  async #checkThere({ stored }: KnownSubscriber): Promise<void> {
    const { log } = this.#options;
    const writer = await log.writerAt(stored.at);
    if (writer === stored.entry.writer) return;
    const newest = writer === null ? await log.subscribers.newest(stored) : null;
    const isLetGo = writer === null && (newest === null || newest.at > stored.at);
    if (!isLetGo) await this.#suspect();
  }

  async #suspect(): Promise<void> {
    this.isSuspected = true;
    throw new LogError('io', 'another entry is where one of a named subscriber was that is known');
  }

  #forget({ stream, subscriber, entry }: StoredSubscriber): void {
    const ofStream = this.#known.get(stream);
    ofStream?.delete(subscriber);
    if (ofStream?.size === 0) this.#known.delete(stream);
    this.#oldEntries.delete(keyOf({ stream, subscriber }));
    this.#tell({ stream, subscriber, entry }, null);
  }

  #show(stored: StoredSubscriber): void {
    this.#tell(stored, cursorOf(stored.entry.acked));
  }

  #tell({ stream, subscriber, entry }: Omit<StoredSubscriber, 'at'>, acked: Cursor | null): void {
    const known = this.#options.replica.find(stream);
    if (subscriber === READERS || known?.entry.origin !== entry.origin) return;
    this.#options.named.take(known.epoch, subscriber, acked);
  }

  #dropOld({ stream, subscriber, at }: StoredSubscriber): void {
    const key = keyOf({ stream, subscriber });
    // With the first of this process as well: nobody has counted what those of before have left.
    const count = (this.#oldEntries.get(key) ?? OLD_ENTRIES_MAX - 1) + 1;
    this.#oldEntries.set(key, count % OLD_ENTRIES_MAX);
    if (count < OLD_ENTRIES_MAX) return;
    ignoreFailure(this.#options.log.subscribers.dropBelow(stream, subscriber, at));
  }
}

function isContradicted({ stored, tailAt }: KnownSubscriber, by: StoredSubscriber): boolean {
  return contradicts(by, stored) || namesPassedOver(by, stored, tailAt);
}

function keyOf({ stream, subscriber }: SubscriberKey): string {
  return `${stream}/${subscriber}`;
}

function cursorOf(acked: string | null): Cursor | null {
  return acked === null ? null : parseCursor(acked);
}

/** What cannot be deleted now is deleted after the next start. */
function ignoreFailure(dropping: Promise<void>): void {
  dropping.catch((error: unknown) => {
    if (!(error instanceof LogError)) throw error;
  });
}
