/**
 * Brings a replica in step with its log, at the start and each time that it may have missed something: the newest entry
 * of every stream, and from then on all that come. Finds out where the log has lost what this broker has seen of it.
 */

import type { Logger } from '../../log.js';
import { LogError } from '../../storage/event-log.js';
import type {
  LogExtent,
  ReplicatedLog,
  StoredEntry,
  StoredSubscriber,
} from '../../storage/replicated-log.js';
import { Turns } from '../turns.js';
import { CONTRADICTED } from './contradiction.js';
import type { Replica } from './replica.js';
import type { ReplicaStream } from './replica-stream.js';
import type { ReplicaSubscribers } from './replica-subscribers.js';
import { dropRemoved } from './tombstones.js';

/** A stream of which the log has lost some: the epoch that is over, and the newest entry that was known. */
export type LostStream = Pick<ReplicaStream, 'name' | 'epoch' | 'entry'>;

export interface LogSyncOptions {
  readonly log: ReplicatedLog;
  readonly replica: Replica;
  readonly subscribers: ReplicaSubscribers;
  readonly logger: Logger;
  /** Begins a stream anew, under another epoch, because the log has lost some of it. @throws {LogError} */
  readonly renew: (stream: LostStream) => Promise<void>;
  /** Entries may be missing from now on. */
  readonly lost: (reason: string) => void;
  readonly failed: (error: Error) => void;
  /** Unix time, milliseconds. */
  readonly nowMs: () => number;
}

/** Reads of streams that have to be caught up with, at a time: servers answer in time, however many there are. */
const READS_MAX = 64;

/** Newest entries that are looked for in the log. If all of them were let go since, a loss of older ones is not noticed. */
const LOOKED_MAX = 16;

/** What is known while the replica gets in step, from when the log is followed until all is taken up. */
interface Round {
  readonly seen: Set<string>;
  /** What has to be read, or written, before the replica is in step. */
  readonly work: Promise<void>[];
  /** What the log has lost some of; null: it has lost nothing that is known. */
  readonly lost: ReadonlySet<ReplicaStream> | null;
}

export class LogSync {
  readonly #options: LogSyncOptions;
  /** Streams that the log has lost some of, until they began anew: the log may fail again before that. */
  readonly #toRenew = new Map<string, LostStream>();
  /** Streams that are being caught up with, and up to where at least. */
  readonly #behind = new Map<string, number>();
  readonly #reads = new Turns(READS_MAX);
  #identity: string | null = null;
  /** Something showed that the log may have lost what this broker has taken up: all streams are looked at, the next time. */
  #isSuspected = false;
  #stop: () => void = () => undefined;

  constructor(options: LogSyncOptions) {
    this.#options = options;
  }

  /** Resolves when all was taken up that the log has. @throws {LogError} @throws {LogCorruption} */
  async begin(): Promise<void> {
    const { replica, subscribers, logger } = this.#options;
    this.end();
    const { identity, lastAt, lost } = await this.#open();
    const round: Round = { seen: new Set(), work: [], lost };
    if (lost !== null) {
      logger.error({ lastAt, streams: lost.size }, 'the log has lost entries');
    }
    replica.begin(lost !== null);
    this.#behind.clear();
    subscribers.begin(lost !== null);
    await this.#follow(round, lastAt);
    for (const stream of replica.streams()) {
      // One that this broker has made meanwhile is still to come.
      if (round.seen.has(stream.name) || (lost === null && stream.at > lastAt)) continue;
      if (lost?.has(stream) === true) this.#lose(stream);
      else replica.drop(stream);
    }
    this.#identity = identity;
    await Promise.all(round.work);
    for (const name of round.seen) if (replica.find(name) === undefined) this.#dropRemoved(name);
    for (const [name, stream] of this.#toRenew) {
      await this.#options.renew(stream);
      this.#toRenew.delete(name);
    }
    await subscribers.end();
  }

  /**
   * How far the log goes, and what it has lost some of. Whoever says that it has may be a machine that is cut off from the
   * others, and has not what they took since: that is confirmed first.
   * @throws {LogError}
   */
  async #open(): Promise<LogExtent & Pick<Round, 'lost'>> {
    const { log, replica, subscribers } = this.#options;
    const isSuspected = this.#isSuspected || subscribers.isSuspected;
    const told = await log.open();
    if (!isSuspected && !(await this.#hasLost(told))) return { ...told, lost: null };
    await log.confirm();
    const extent = await log.open();
    const hasLost = await this.#hasLost(extent);
    if (!hasLost && !isSuspected) return { ...extent, lost: null };
    const lost = new Set<ReplicaStream>();
    const look = async (stream: ReplicaStream): Promise<void> => {
      if (await this.#isLost(stream, hasLost)) lost.add(stream);
    };
    await Promise.all(replica.streams().map((stream) => this.#reads.take(() => look(stream))));
    this.#isSuspected = false;
    return { ...extent, lost };
  }

  /**
   * Whether the log does not have the newest entry that was taken up of a stream.
   * @param hasLost whether it is known to have lost some. If not, one that is not there may have been let go.
   * @throws {LogError}
   */
  async #isLost({ name, at, entry }: ReplicaStream, hasLost: boolean): Promise<boolean> {
    const { log } = this.#options;
    const writer = await log.writerAt(at);
    if (writer !== null || hasLost) return writer !== entry.writer;
    const newest = await log.newest(name);
    return newest !== null && newest.at < at;
  }

  /**
   * Whether it is another log, ends before what was seen of it, or has other entries where those were. Where it still has
   * the newest, it has lost nothing that lay before.
   * @throws {LogError}
   */
  async #hasLost({ identity, lastAt }: LogExtent): Promise<boolean> {
    const { log, replica, subscribers } = this.#options;
    if (this.#identity !== null && identity !== this.#identity) return true;
    if (lastAt < Math.max(replica.lastAt, subscribers.lastAt)) return true;
    const known = [...replica.streams(), ...subscribers.newest()];
    const newest = known.sort((one, other) => other.at - one.at);
    for (const { at, entry } of newest.slice(0, LOOKED_MAX)) {
      const writer = await log.writerAt(at);
      // What is not there may have been let go, as old entries are.
      if (writer !== null) return writer !== entry.writer;
    }
    return false;
  }

  /**
   * An entry shows that the log has lost some.
   * @param stream that was known, and is no more here: it begins anew. Null: it has to be looked which.
   */
  contradicted(stream: ReplicaStream | null): void {
    if (stream !== null) this.#toRenew.set(stream.name, stream);
    this.#isSuspected = true;
    this.#options.lost(CONTRADICTED);
  }

  end(): void {
    this.#stop();
    this.#stop = () => undefined;
  }

  /** Resolves when the newest of each stream was received; goes on afterwards. */
  async #follow(round: Round, lastAt: number): Promise<void> {
    const { log, lost, failed } = this.#options;
    let isUpToDate = false;
    let settle: { resolve: () => void; reject: (error: Error) => void } | null = null;
    const upToDate = new Promise<void>((resolve, reject) => {
      settle = { resolve, reject };
    });
    // It may fail before it is waited for.
    upToDate.catch(() => undefined);
    const attempt = (act: () => void): void => {
      try {
        act();
      } catch (error) {
        failed(error as Error);
      }
    };
    this.#stop = await log.follow(lastAt, {
      received: (stored) => attempt(() => this.#received(stored, isUpToDate ? null : round)),
      receivedSubscriber: (stored) =>
        attempt(() => this.#receivedSubscriber(stored, isUpToDate ? null : round)),
      upToDate: () => {
        isUpToDate = true;
        settle?.resolve();
      },
      lost: (reason) => {
        if (isUpToDate) lost(reason);
        else settle?.reject(new LogError('io', reason));
      },
      failed: (error) => {
        if (isUpToDate) failed(error);
        else settle?.reject(error);
      },
    });
    await upToDate;
  }

  /** @param round null: it is one of the new ones. */
  #received(stored: StoredEntry, round: Round | null): void {
    const { replica, subscribers } = this.#options;
    subscribers.followed(stored.at);
    round?.seen.add(stored.stream);
    const stream = replica.find(stored.stream);
    if (stream !== undefined && round?.lost?.has(stream) === true) {
      this.#lose(stream);
      if (stored.entry.epoch === stream.epoch) return;
    }
    if (round !== null) this.#removeAgain(stored);
    const lookedAt = replica.lookedAt(stored.stream);
    // Entries between it and the last that was looked at were not received.
    if (round !== null && lookedAt !== null && lookedAt < stored.at) this.#behind.set(stored.stream, 0);
    // One that names none need not be the first: where several made the stream at a time, only the first of them counts.
    const isUnsure = round !== null && lookedAt === null && stored.entry.previous === 0;
    if (isUnsure || this.#behind.has(stored.stream) || !replica.takeUp(stored)) {
      const catchUp = this.#catchUp(stored);
      const isKnown = round !== null && stream !== undefined && !stream.isGone;
      this.#begin(isKnown ? () => this.#checkThere(stream).then(catchUp) : catchUp, round);
    } else if (round !== null && stream !== undefined && !isSame(stream, stored)) {
      this.#begin(() => this.#checkThere(stream), round);
    }
  }

  /**
   * More has come of a stream while it was not followed: it goes on from what is known here only if the log has that.
   * @throws {LogError} it has not
   */
  async #checkThere(stream: ReplicaStream): Promise<void> {
    if (stream.isGone || !(await this.#isLost(stream, false))) return;
    this.#isSuspected = true;
    this.end();
    throw new LogError('io', CONTRADICTED);
  }

  #lose(stream: ReplicaStream): void {
    this.#options.replica.lose(stream);
    this.#toRenew.set(stream.name, stream);
  }

  /** The log has lost that a stream was removed: that is written down again. */
  #removeAgain({ stream: name, entry }: StoredEntry): void {
    const { replica } = this.#options;
    const isOver = entry.state === 'removed' || !replica.hasEnded(entry.epoch);
    if (isOver || replica.find(name) !== undefined || this.#toRenew.has(name)) return;
    this.#toRenew.set(name, { name, epoch: entry.epoch, entry: { ...entry, state: 'removed' } });
  }

  #receivedSubscriber(stored: StoredSubscriber, round: Round | null): void {
    const { subscribers } = this.#options;
    const read = subscribers.received(stored);
    if (read !== null) this.#begin(read, round);
    subscribers.followed(stored.at);
  }

  #begin(read: () => Promise<void>, round: Round | null): void {
    const work = this.#reads.take(read);
    if (round !== null) round.work.push(work);
    // It may fail before the round waits for it, or after the round has failed.
    work.catch((error: Error) => (round === null ? this.#catchUpFailed(error) : undefined));
  }

  /** Of what was removed by who did not live to let it go. What is not deleted now is with the next start. */
  #dropRemoved(stream: string): void {
    const { log, replica, nowMs } = this.#options;
    const dropping = this.#reads.take(() => dropRemoved(log, replica, { stream, nowMs: nowMs() }));
    dropping.catch((error: unknown) => {
      if (!(error instanceof LogError)) throw error;
    });
  }

  /** Entries of this stream are missing here: none that comes is taken up before they were read. @returns reads them. */
  #catchUp(stored: StoredEntry): () => Promise<void> {
    const { stream, at } = stored;
    this.#behind.set(stream, Math.max(at, this.#behind.get(stream) ?? 0));
    return async () => {
      await this.#options.replica.takeUpNewest(stored);
      if ((this.#behind.get(stream) ?? 0) <= at) this.#behind.delete(stream);
    };
  }

  #catchUpFailed(error: Error): void {
    const { lost, failed } = this.#options;
    if (error instanceof LogError) lost(error.message);
    else failed(error);
  }
}

function isSame(stream: ReplicaStream, { at, entry }: StoredEntry): boolean {
  return stream.at === at && stream.entry.writer === entry.writer;
}
