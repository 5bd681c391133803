/**
 * What this broker has of a replicated log: its streams, each as far as entries were taken up. Entries come from the
 * one who follows the log, from this broker's own appends, and from reads where some are missing; each is taken up once
 * and in order, whichever way it came first.
 *
 * Single owner: the main thread.
 */

import type { Directory } from '../../broker/directory.js';
import type { ProducerBook, ProducerBounds } from '../../core/producer-book.js';
import { RequestError } from '../../errors.js';
import type { Logger } from '../../log.js';
import { LogError } from '../../storage/event-log.js';
import { decodeParts } from '../../storage/jetstream/log-entry.js';
import type { ReplicatedLog, StoredEntry } from '../../storage/replicated-log.js';
import { contradicts, namesPassedOver } from './contradiction.js';
import { FreshRound } from './fresh-round.js';
import { findNewest } from './newest-entry.js';
import { readBook, recordClaims } from './read-book.js';
import { ReplicaStream } from './replica-stream.js';
import type { RingFiller } from './ring-filler.js';

export interface ReplicaOptions {
  readonly log: ReplicatedLog;
  readonly directory: Directory;
  readonly filler: RingFiller;
  readonly producers: ProducerBounds;
  readonly logger: Logger;
  /** Told of a stream that has more events than before. */
  readonly grown: (stream: ReplicaStream) => void;
  /** Told of a stream that is there, perhaps anew under another epoch. */
  readonly opened: (stream: ReplicaStream) => void;
  /** Told of a stream that was removed. */
  readonly removed: (stream: ReplicaStream) => void;
  /** Told that the log has lost something: some of a stream, which is no more here; null: perhaps not of what is known. */
  readonly contradicted: (stream: ReplicaStream | null) => void;
}

/** Streams of which it is remembered that they went, so that what comes late does not bring one back. */
const GONE_MAX = 10_000;
/** Entries of a stream that are read one by one; if more are missing, only the newest is, and readers go to the log. */
const READ_MAX = 64;

export class Replica {
  readonly #options: ReplicaOptions;
  readonly #streams = new Map<string, ReplicaStream>();
  readonly #byEpoch = new Map<string, ReplicaStream>();
  /** Streams that are being caught up with. */
  readonly #catchingUp = new Map<string, FreshRound>();
  /** By the name of a removed stream: the position of its last entry. */
  readonly #goneAt = new Map<string, number>();
  /** Epochs that are not taken up again, and whose they were: they were removed, or the log has lost some of them. */
  readonly #endedEpochs = new Map<string, string>();
  /** Position of the newest entry of any stream. */
  lastAt = 0;

  constructor(options: ReplicaOptions) {
    this.#options = options;
  }

  find(name: string): ReplicaStream | undefined {
    return this.#streams.get(name);
  }

  ofEpoch(epoch: string): ReplicaStream | undefined {
    return this.#byEpoch.get(epoch);
  }

  /** Up to where the entries of a stream were looked at, also of one that is no more; null: nothing is known of it. */
  lookedAt(name: string): number | null {
    return this.#streams.get(name)?.tailAt ?? this.#goneAt.get(name) ?? null;
  }

  /** All of them, in a list of its own: some may go while it is gone through. */
  streams(): ReplicaStream[] {
    return [...this.#streams.values()];
  }

  /**
   * Takes up an entry of which it is known that none of its stream lies between it and the last: it came in the order of
   * the log, or was read as the next one. An entry that does not count is passed over.
   *
   * @returns false when that cannot be told by what is known here: it has to be caught up with.
   */
  takeUp(stored: StoredEntry): boolean {
    const { entry, at, stream: name } = stored;
    this.lastAt = Math.max(this.lastAt, at);
    const stream = this.#streams.get(name);
    if (stream !== undefined && this.#isContradicted(stream, stored)) return true;
    const newestAt = stream?.at ?? this.#goneAt.get(name);
    if (at <= (stream?.tailAt ?? newestAt ?? 0)) return true;
    if (newestAt === undefined ? entry.previous > 0 : entry.previous > newestAt) return false;
    if (newestAt !== undefined && entry.previous < newestAt) {
      // The last entry of a removed stream may be deleted by now: what begins it anew then follows nothing.
      if (stream === undefined || entry.previous === 0) return false;
      this.#passOver(stream, stored);
      return true;
    }
    if (stream === undefined) {
      this.#open(stored);
    } else if (entry.epoch !== stream.epoch) {
      this.#replace(stream, stored);
    } else {
      this.#advance(stream, stored);
    }
    return true;
  }

  /** @returns true: nothing more of the stream is taken up, before it is known what the log has lost. */
  #isContradicted(stream: ReplicaStream, stored: StoredEntry): boolean {
    const isOdd = namesPassedOver(stored, stream, stream.tailAt);
    if (contradicts(stored, stream) || (isOdd && stream.wasSuspect)) {
      stream.contradicted();
    } else if (!stream.isSuspect && isOdd) {
      stream.isSuspect = true;
      this.#options.contradicted(null);
    }
    return stream.isGone || stream.isSuspect;
  }

  #contradicted(stream: ReplicaStream): void {
    this.lose(stream);
    this.#options.contradicted(stream);
  }

  /**
   * The newest entry of a stream that counts, and where the newest of all lies. Null: there is none.
   * @throws {LogError}
   */
  newest(name: string): Promise<{ stored: StoredEntry; tailAt: number } | null> {
    const { log } = this.#options;
    return findNewest({ newest: () => log.newest(name), next: (from) => log.next(name, from) });
  }

  /** Takes up all that the log has of a stream at the moment of the call, or newer. @throws {LogError} */
  catchUp(name: string): Promise<void> {
    const under = this.#catchingUp.get(name);
    if (under !== undefined) return under.take();
    const round = new FreshRound(() =>
      this.#catchUp(name).finally(() => {
        if (!round.isAwaited) this.#catchingUp.delete(name);
      }),
    );
    this.#catchingUp.set(name, round);
    return round.take();
  }

  /** As `catchUp`, from an entry that was the newest a moment ago: most often that counts, which one read shows. */
  async takeUpNewest(stored: StoredEntry): Promise<void> {
    const { stream: name, at, entry } = stored;
    if (!this.#streams.has(name)) {
      const first = await this.#options.log.next(name, entry.previous + 1);
      if (first?.at === at && !this.#streams.has(name)) return this.#jumpTo({ stored, tailAt: at });
    }
    return this.catchUp(name);
  }

  /** The stream is no more, here. */
  drop(stream: ReplicaStream): void {
    this.#streams.delete(stream.name);
    this.#byEpoch.delete(stream.epoch);
    stream.isGone = true;
    stream.looked(Number.POSITIVE_INFINITY);
    this.#options.directory.remove(stream.name);
    stream.observer?.gone();
  }

  /** The log has lost some of the stream's epoch: it is no more, and will not be taken up again (I3). */
  lose(stream: ReplicaStream): void {
    remember(this.#endedEpochs, stream.epoch, stream.name);
    this.drop(stream);
  }

  /** Whether an epoch is over, also where the log does not say so, or no longer. */
  hasEnded(epoch: string): boolean {
    return this.#endedEpochs.has(epoch);
  }

  /** Who published to a stream, read from the log where that was not done yet. @throws {LogError} */
  async bookOf(stream: ReplicaStream): Promise<ProducerBook> {
    if (stream.book !== null) return stream.book;
    const { log, producers } = this.#options;
    const book = await readBook(log, stream, producers);
    stream.book ??= book;
    return stream.book;
  }

  async #catchUp(name: string): Promise<void> {
    if (this.#streams.has(name) && (await this.#readOn(name))) return;
    const newest = await this.newest(name);
    if (newest === null) return;
    const known = this.#streams.get(name);
    // Entries are passed over unread: what is known has to be one of those before them.
    if (known !== undefined && newest.stored.at > known.at && !(await this.#isThere(known))) {
      throw known.contradicted();
    }
    this.#jumpTo(newest);
  }

  /** Takes up one entry after the other. @returns whether those were all; if not, the rest is passed over. @throws {LogError} */
  async #readOn(name: string): Promise<boolean> {
    const { log } = this.#options;
    // Whoever appends without a pause may be faster than what is read here.
    const last = await log.newest(name);
    if (last === null) return true;
    for (let read = 0; read < READ_MAX; read++) {
      const stream = this.#streams.get(name);
      if (stream === undefined) return false;
      if (stream.isSuspect) throw new LogError('io', 'an entry names another one than is known to count');
      if (stream.tailAt >= last.at) return true;
      const stored = await log.next(name, stream.tailAt + 1);
      if (stored === null) return true;
      if (!this.takeUp(stored) && !(await this.#isBegunAgain(stream, stored))) return false;
    }
    return false;
  }

  /**
   * Whether an entry that begins a stream does not count, because the stream was there: then it is passed over. Were it
   * removed since, its last entry would not be there any more.
   * @throws {LogError}
   */
  async #isBegunAgain(stream: ReplicaStream, stored: StoredEntry): Promise<boolean> {
    if (stored.entry.previous > 0) return false;
    if ((await this.#options.log.writerAt(stream.at)) !== stream.entry.writer) return false;
    this.#passOver(stream, stored);
    return true;
  }

  #passOver(stream: ReplicaStream, { at, entry }: StoredEntry): void {
    if (at <= stream.tailAt) return;
    stream.observer?.lost(entry);
    stream.looked(at);
  }

  /** Whether what is known is where it was. What is not there may have been let go. @throws {LogError} */
  async #isThere({ at, entry }: ReplicaStream): Promise<boolean> {
    const writer = await this.#options.log.writerAt(at);
    return writer === null || writer === entry.writer;
  }

  /**
   * To the newest entry that counts, of a stream that is not known or too far behind.
   * @throws {LogError} it does not go on from what is known
   */
  #jumpTo({ stored, tailAt }: { stored: StoredEntry; tailAt: number }): void {
    const { entry, at, stream: name } = stored;
    const stream = this.#streams.get(name);
    this.lastAt = Math.max(this.lastAt, tailAt);
    if (stream?.isSuspect === true || at <= (stream?.at ?? this.#goneAt.get(name) ?? 0)) return;
    if (stream === undefined) {
      this.#open(stored);
    } else if (entry.epoch !== stream.epoch) {
      this.#replace(stream, stored);
    } else if (entry.head - entry.count < stream.entry.head) {
      throw stream.contradicted();
    } else {
      // What is passed over is in the log still: publishers are read from there anew, and readers go there.
      stream.book = null;
      this.#options.filler.skip(stream.ref, entry.head - entry.count);
      stream.observer?.jumped();
      this.#advance(stream, stored);
    }
    this.#streams.get(name)?.looked(tailAt);
  }

  #replace(stream: ReplicaStream, stored: StoredEntry): void {
    this.drop(stream);
    this.#open(stored);
  }

  #advance(stream: ReplicaStream, stored: StoredEntry): void {
    const { entry, at } = stored;
    const before = stream.entry;
    stream.entry = entry;
    stream.at = at;
    if (entry.floor > before.floor) stream.floorMovedAt = at;
    if (stream.book !== null) recordClaims(stream.book, entry);
    if (entry.state === 'removed') {
      stream.observer?.advanced(entry);
      remember(this.#goneAt, stored.stream, stored.at);
      // Should the log lose that it was removed, what it still has may be less than was seen.
      remember(this.#endedEpochs, stream.epoch, stream.name);
      this.drop(stream);
      return this.#options.removed(stream);
    }
    stream.looked(at);
    this.#options.filler.fill(stream.ref, partsOf(stored), { head: entry.head, floor: entry.floor });
    if (entry.state === 'closed' && before.state === 'open') this.#close(stream);
    stream.observer?.advanced(entry);
    if (entry.count > 0) this.#options.grown(stream);
  }

  /**
   * Following begins anew. What was passed over may have been lost since, and its position given again.
   * @param hasLost of the positions of before only those mean something where the log has the entry that is known.
   */
  begin(hasLost: boolean): void {
    if (hasLost) {
      this.#goneAt.clear();
      this.lastAt = 0;
    }
    for (const stream of this.#streams.values()) {
      stream.tailAt = stream.at;
      stream.wasSuspect ||= stream.isSuspect;
      stream.isSuspect = false;
    }
  }

  #open(stored: StoredEntry): void {
    const { directory, filler, logger } = this.#options;
    const { entry, stream: name } = stored;
    if (entry.state === 'removed') return remember(this.#goneAt, name, stored.at);
    if (this.hasEnded(entry.epoch)) return;
    const { epoch, config, floor } = entry;
    const head = entry.head - entry.count;
    try {
      const logged = { floor: Math.min(floor, head + 1), head, closed: false };
      const ref = directory.restore({ name, epoch, config, ...logged });
      const stream: ReplicaStream = new ReplicaStream(ref, stored, () => this.#contradicted(stream));
      this.#streams.set(name, stream);
      this.#byEpoch.set(epoch, stream);
      filler.fill(stream.ref, partsOf(stored), { head: entry.head, floor });
      if (entry.state === 'closed') this.#close(stream);
      this.#options.opened(stream);
    } catch (error) {
      if (!(error instanceof RequestError)) throw error;
      logger.error({ stream: name, code: error.code }, 'no room for a stream of the log');
    }
  }

  #close(stream: ReplicaStream): void {
    this.#options.directory.close(stream.name);
    this.#options.filler.close(stream.ref);
  }
}

function partsOf({ stream, at, entry, body }: StoredEntry): ReturnType<typeof decodeParts> {
  return decodeParts(body, entry.count, `entry ${at} of stream ${stream}`);
}

function remember<V>(gone: Map<string, V>, key: string, value: V): void {
  gone.delete(key);
  gone.set(key, value);
  for (const oldest of gone.keys()) {
    if (gone.size <= GONE_MAX) break;
    gone.delete(oldest);
  }
}
