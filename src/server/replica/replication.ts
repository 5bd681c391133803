/**
 * A broker whose log is shared with others: it keeps its replica in step with the log, and puts what its clients want
 * into it. What it says of a stream is in the log when it is said.
 *
 * Single owner: the main thread.
 */

import { setTimeout as sleep } from 'node:timers/promises';
import type { Directory } from '../../broker/directory.js';
import type { StreamRef } from '../../broker/edge-stream.js';
import { logRefusal } from '../../broker/log-refusal.js';
import type { Placed, Publish } from '../../broker/replicated-publish.js';
import { EPOCH_LENGTH, makeEpoch } from '../../core/epoch.js';
import { type StreamConfig, sameConfig } from '../../core/retention.js';
import { RequestError } from '../../errors.js';
import type { Logger } from '../../log.js';
import { LOG_FAILED, LOG_FULL, LOG_HEALTHY, LogCounter, type LogStatus } from '../../ring/log-status.js';
import { hasRoomForStream } from '../../ring/ring-growth.js';
import type { Rings } from '../../ring/rings.js';
import { LogError } from '../../storage/event-log.js';
import { encodeParts, type LogEntry } from '../../storage/jetstream/log-entry.js';
import type { ReplicatedLog, StoredEntry } from '../../storage/replicated-log.js';
import { firstEntry } from './first-entry.js';
import { FreshRound } from './fresh-round.js';
import type { LogRoom } from './log-room.js';
import { LogSync, type LostStream } from './log-sync.js';
import type { Replica } from './replica.js';
import type { ReplicaHeld } from './replica-held.js';
import type { ReplicaStream } from './replica-stream.js';
import type { ReplicaSubscribers } from './replica-subscribers.js';
import { type Change, ReplicaWriter, type WriterParts } from './replica-writer.js';
import { StreamGone } from './waiting-publish.js';
import type { WriteNames } from './write-names.js';

export interface ReplicationOptions {
  readonly log: ReplicatedLog;
  readonly replica: Replica;
  readonly subscribers: ReplicaSubscribers;
  readonly held: ReplicaHeld;
  readonly names: WriteNames;
  readonly directory: Directory;
  readonly rings: Rings;
  readonly status: LogStatus;
  readonly room: LogRoom;
  readonly autoCreate: boolean;
  readonly defaults: StreamConfig;
  readonly logger: Logger;
  readonly nowMs: () => number;
  readonly randomBytes: (count: number) => Uint8Array;
  /** How long a log that failed is left alone before it is asked again. */
  readonly retryMs: number;
}

/** Whether what was read of a stream can stand as it is. Undefined: nothing was. */
type Stands = (stream: ReplicaStream | undefined) => boolean;

const isThere: Stands = (stream) => stream !== undefined;
/** An append follows, which a machine that is cut off cannot take. */
const untilAppended: Stands = () => true;

/** How often a stream may be deleted, or made by others, under a request before that is an error. */
const TRIES_MAX = 5;

export class Replication {
  /** Resolves when the log holds what no broker wrote, or another rule of it is broken. */
  readonly failed: Promise<Error>;

  readonly #options: ReplicationOptions;
  readonly #sync: LogSync;
  readonly #writers = new WeakMap<ReplicaStream, ReplicaWriter>();
  readonly #writerParts: WriterParts;
  readonly #confirmation: FreshRound;
  /** While the log fails: resolves when it can be asked again. */
  #recovering: Promise<void> | null = null;
  /** When all that the log had was taken up last, on the clock of `performance`, milliseconds. */
  #backAtMs = 0;
  /** Nothing is received any more since the log was followed last, which may be while that is not over yet. */
  #mayMiss = false;
  #isClosing = false;
  #fail: (error: Error) => void = () => undefined;

  constructor(options: ReplicationOptions) {
    const { log, replica, subscribers, held, names, status, room, logger, nowMs } = options;
    this.#options = options;
    this.failed = new Promise((resolve) => {
      this.#fail = resolve;
    });
    this.#sync = new LogSync({
      log,
      replica,
      subscribers,
      logger,
      renew: (stream) => this.#renew(stream),
      lost: (reason) => {
        this.#mayMiss = true;
        void this.recovered(new LogError('io', reason));
      },
      failed: (error) => this.#fail(error),
      nowMs,
    });
    this.#confirmation = new FreshRound(() => log.confirm());
    this.#writerParts = {
      log,
      replica,
      held,
      status,
      room,
      names,
      recovering: () => this.#recovering,
      confirmed: async () => (log.isExact ? undefined : this.#confirmation.take()),
      recovered: (error) => this.recovered(error),
      nowMs,
    };
  }

  /** Takes up all that the log has. Once. @throws {LogError} @throws {LogCorruption} */
  start(): Promise<void> {
    return this.#sync.begin();
  }

  /** The log failed, or may have. Resolves when all that it has was taken up again. */
  recovered(error: LogError): Promise<void> {
    // The broker ends: that its connection closes is no fault, and nothing is tried any more.
    if (this.#isClosing) return new Promise(() => undefined);
    // What was asked before the log was back, and not answered in time, says nothing of how it is now.
    if (error.askedAtMs < this.#backAtMs && this.#recovering === null) return Promise.resolve();
    this.#options.status.fault = LOG_FAILED;
    this.#recovering ??= this.#recover(error).finally(() => {
      this.#recovering = null;
    });
    return this.#recovering;
  }

  /**
   * Takes up what other brokers have written of a stream, up to now. The machine that is asked may be cut off from the others,
   * and not have noticed: what it lacks is believed when most of them have confirmed that it is one of them (I2).
   * @param stands whether what was read needs no confirmation; absent: that the stream is there needs none.
   * @throws {RequestError} `log_unavailable`
   */
  async refresh(name: string, stands: Stands = isThere): Promise<void> {
    const { log, replica } = this.#options;
    this.checkHealthy();
    try {
      await replica.catchUp(name);
      if (!log.isExact && !stands(replica.find(name))) {
        await this.#confirmation.take();
        await replica.catchUp(name);
      }
    } catch (error) {
      throw this.unavailable(error);
    }
    this.checkHealthy();
  }

  /**
   * Until all that the log has was taken up again, nobody can say that a stream does not exist, nor create it. What is
   * appended before may follow an entry that the log has lost, and name another one by a position that was given again
   * (I3): it is refused, or waits (`WriterParts.recovering`).
   * @throws {RequestError} `log_unavailable`
   */
  checkHealthy(): void {
    if (this.#recovering !== null) throw logRefusal(LOG_FAILED);
  }

  /**
   * Finds a stream, or creates it where that is wanted and the server does so (contract 2.4).
   * @throws {RequestError} `log_unavailable`, or why it cannot be created
   */
  async resolve(name: string, create: boolean): Promise<StreamRef | null> {
    const { directory, autoCreate, defaults } = this.#options;
    const known = directory.find(name);
    if (known !== null) return known;
    const makes = create && autoCreate;
    await this.refresh(name, makes ? untilAppended : isThere);
    const found = directory.find(name);
    if (found !== null || !makes) return found;
    return (await this.#create(name, defaults)).ref;
  }

  /** Creates a stream with a configuration (contract 2.1). @throws {RequestError} as `resolve`; `config_conflict` */
  async put(name: string, json: unknown): Promise<{ ref: StreamRef; created: boolean }> {
    const { directory } = this.#options;
    const config = directory.readConfig(json);
    await this.refresh(name, untilAppended);
    const found = directory.find(name);
    const { ref, created } =
      found === null ? await this.#create(name, config) : { ref: found, created: false };
    if (!created && !sameConfig(ref.config, config)) {
      throw new RequestError('config_conflict', undefined, { config: ref.config });
    }
    return { ref, created };
  }

  /** Ends a stream (contract 2.3). @throws {RequestError} `commit_unknown` */
  close(name: string): Promise<StreamRef | null> {
    return this.#change(name, (entry) => (entry.state === 'open' ? { ...entry, state: 'closed' } : null));
  }

  /** Removes a stream (contract 2.3). @throws {RequestError} `commit_unknown` */
  async remove(name: string): Promise<boolean> {
    const removed = await this.#change(name, (entry) => ({ ...entry, state: 'removed' }));
    return removed !== null;
  }

  /** @throws {RequestError} why nothing was appended, or `commit_unknown` */
  async publish(name: string, publish: Publish): Promise<Placed> {
    for (let tries = 0; tries < TRIES_MAX; tries++) {
      const ref = await this.resolve(name, publish.creates);
      const stream = ref === null ? undefined : this.#options.replica.ofEpoch(ref.epoch);
      if (stream === undefined) {
        if (publish.ifHead === null) throw new RequestError('stream_not_found');
        throw new RequestError('head_mismatch', undefined, { head: null });
      }
      try {
        return await this.writerOf(stream).publish(publish);
      } catch (error) {
        if (!(error instanceof StreamGone)) throw error;
      }
    }
    throw new RequestError('stream_not_found', 'the stream is being deleted over and over');
  }

  writerOf(stream: ReplicaStream): ReplicaWriter {
    let writer = this.#writers.get(stream);
    if (writer === undefined) {
      writer = new ReplicaWriter(this.#writerParts, stream);
      this.#writers.set(stream, writer);
    }
    return writer;
  }

  /** As `LogSync.contradicted`. */
  contradicted(stream: ReplicaStream | null): void {
    this.#sync.contradicted(stream);
  }

  stop(): void {
    this.#isClosing = true;
    this.#sync.end();
  }

  /** @returns the stream as it was changed; null: there is none. */
  async #change(name: string, change: Change): Promise<StreamRef | null> {
    await this.refresh(name);
    const stream = this.#options.replica.find(name);
    if (stream === undefined) return null;
    try {
      await this.writerOf(stream).change(change);
      return stream.ref;
    } catch (error) {
      if (error instanceof StreamGone) return null;
      throw error;
    }
  }

  async #create(name: string, config: StreamConfig): Promise<{ ref: StreamRef; created: boolean }> {
    const { log, directory, replica, rings } = this.#options;
    // A stream that could not be given its first event is not made.
    if (!hasRoomForStream(rings)) throw new RequestError('insufficient_memory');
    if (directory.size >= rings.slotCount) {
      throw new RequestError('too_many_streams', undefined, { limit: rings.slotCount });
    }
    try {
      for (let tries = 0; tries < TRIES_MAX; tries++) {
        const before = await replica.newest(name);
        const entry = this.#firstEntry(config, before?.stored ?? null);
        this.checkHealthy();
        const there = before?.stored.entry;
        if (there === undefined || there.state === 'removed' || replica.hasEnded(there.epoch)) {
          await log.append(name, entry, encodeParts([]), before?.tailAt ?? 0);
        }
        await replica.catchUp(name);
        const ref = directory.find(name);
        if (ref !== null) return { ref, created: ref.epoch === entry.epoch };
      }
    } catch (error) {
      throw this.unavailable(error);
    }
    throw new RequestError('stream_not_found', 'the stream is being deleted over and over');
  }

  #firstEntry(config: StreamConfig, follows: StoredEntry | null): LogEntry {
    const { nowMs, randomBytes, names } = this.#options;
    const epoch = makeEpoch(randomBytes(EPOCH_LENGTH));
    return firstEntry(config, { epoch, follows, atMs: nowMs(), writer: names.next() });
  }

  /**
   * The log has lost events of a stream: it begins anew under another epoch, so that no id is given twice (I3). Where
   * another broker has done so already, or has removed it, that is taken up.
   * @throws {LogError}
   */
  async #renew({ name, epoch, entry: before }: LostStream): Promise<void> {
    const { log, replica, status } = this.#options;
    const { config, state, origin } = before;
    for (let tries = 0; tries < TRIES_MAX; tries++) {
      const newest = await replica.newest(name);
      const there = newest?.stored.entry;
      const isLost = there === undefined || there.epoch === epoch || replica.hasEnded(there.epoch);
      if (!isLost || there?.state === 'removed') {
        if (state !== 'removed') status.add(LogCounter.renewedStreams, 1);
        return replica.catchUp(name);
      }
      // One who has not seen what was lost may be first, and goes on with the epoch of before.
      const entry = { ...this.#firstEntry(config, newest?.stored ?? null), state, origin };
      await log.append(name, entry, encodeParts([]), newest?.tailAt ?? 0);
    }
    throw new LogError('io', 'others write to a stream that begins anew, over and over');
  }

  async #recover(first: LogError): Promise<void> {
    const { logger, status } = this.#options;
    logger.error({ fault: first.fault, reason: first.message }, 'the log fails');
    while (!this.#isClosing) {
      await sleep(this.#options.retryMs);
      this.#mayMiss = false;
      try {
        await this.#sync.begin();
        if (!this.#mayMiss) break;
      } catch (error) {
        if (!(error instanceof LogError)) return this.#fail(error as Error);
        logger.debug({ reason: error.message }, 'the log still fails');
      }
    }
    if (this.#isClosing) return;
    this.#backAtMs = performance.now();
    status.fault = LOG_HEALTHY;
    logger.info({ streams: this.#options.directory.size }, 'the log is back');
  }

  /** What a client is told of an error of the log, which is asked again from now on until it is back. */
  unavailable(error: unknown): unknown {
    if (!(error instanceof LogError)) return error;
    if (error.fault === 'full') this.#options.room.refused();
    else void this.recovered(error);
    return logRefusal(error.fault === 'full' ? LOG_FULL : LOG_FAILED);
  }
}
