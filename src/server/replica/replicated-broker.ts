/**
 * The durable side of a broker whose log is shared: the connection to the log, what keeps the broker in step with it, and
 * the reads below the ring.
 */

import { setTimeout as sleep } from 'node:timers/promises';
import { assert } from '../../assert.js';
import type { Directory } from '../../broker/directory.js';
import { NO_JOURNAL } from '../../broker/journal.js';
import type { NamedSubscribers } from '../../broker/named-subscribers.js';
import type { Config } from '../../config/schema.js';
import { RequestError } from '../../errors.js';
import type { Logger } from '../../log.js';
import type { LogSources } from '../../metrics/log-metrics.js';
import { readPositions } from '../../ring/lifecycle.js';
import { createLogStatus, LogStatus } from '../../ring/log-status.js';
import type { Rings } from '../../ring/rings.js';
import type { Wakes } from '../../ring/wake-queue.js';
import { LogError } from '../../storage/event-log.js';
import { JetStreamLog } from '../../storage/jetstream/jetstream-log.js';
import type { ReplicatedLog } from '../../storage/replicated-log.js';
import { producerLimits } from '../bounds.js';
import type { LogBacking } from '../log-backing.js';
import type { Questions } from '../messages.js';
import type { LostEntries } from './lost-entries.js';
import type { Replica } from './replica.js';
import { assembleReplica } from './replica-assembly.js';
import { ReplicaReader } from './replica-reader.js';
import type { Replication } from './replication.js';
import type { SubscriberWriter } from './subscriber-writer.js';

export interface ReplicatedOptions {
  readonly config: Config;
  readonly rings: Rings;
  readonly wakes: Wakes;
  readonly logger: Logger;
  readonly nowMs: () => number;
  readonly randomBytes: (count: number) => Uint8Array;
}

interface Parts {
  readonly replica: Replica;
  readonly replication: Replication;
  readonly lost: LostEntries;
  readonly subscribers: SubscriberWriter;
  readonly sweeping: NodeJS.Timeout;
}

const SWEEP_MS = 1000;
const RETRY_MS = 250;
/** Reads of the log under way at a time. */
const READS_MAX = 16;

export class ReplicatedBroker implements LogBacking {
  readonly status = createLogStatus();
  /** What happens to streams is in the log before the directory hears of it. */
  readonly journal = NO_JOURNAL;
  readonly #options: ReplicatedOptions;
  readonly #log: ReplicatedLog;
  readonly #reader: ReplicaReader;
  readonly #ended: Promise<Error>;
  #end: (error: Error) => void = () => undefined;
  #parts: Parts | null = null;

  private constructor(log: ReplicatedLog, options: ReplicatedOptions) {
    this.#log = log;
    this.#options = options;
    this.#reader = new ReplicaReader({ log, readsMax: READS_MAX });
    this.#ended = new Promise((resolve) => {
      this.#end = resolve;
    });
  }

  /** @throws {LogError} when the log cannot be reached. */
  static async open(options: ReplicatedOptions): Promise<ReplicatedBroker> {
    const { config, logger } = options;
    const connect = () =>
      JetStreamLog.connect({
        urls: config.log,
        credentialsFile: config.logCredentialsFile,
        tlsCaFile: config.logTlsCaFile,
        tlsCertFile: config.logTlsCertFile,
        tlsKeyFile: config.logTlsKeyFile,
        stream: config.logStream,
        replicas: config.logReplicas,
        bytesMax: config.logBytesMax,
        connected: (isConnected) => {
          if (!isConnected)
            void broker.#parts?.replication.recovered(new LogError('io', 'the connection broke'));
        },
        tooSmall: (bytes) =>
          logger.warn({ bytes, logBytesMax: config.logBytesMax }, 'logBytesMax is not set: the log has more'),
        outdated: (version) =>
          logger.warn({ version }, 'NATS before 2.10.23 may have servers differ in what they keep'),
        refused: (reason) => logger.error({ reason }, 'refused by the log'),
        ended: (error) => broker.#end(error),
      });
    const broker = new ReplicatedBroker(await reached(connect, options), options);
    return broker;
  }

  /** @throws {LogError} @throws {LogCorruption} */
  async restore(directory: Directory, named: NamedSubscribers): Promise<void> {
    const { config, ...shared } = this.#options;
    const { replica, replication, retention, lost, room, subscribers, subscriberWriter } = assembleReplica({
      ...shared,
      log: this.#log,
      directory,
      named,
      status: new LogStatus(this.status),
      producers: producerLimits(config),
      autoCreate: config.autoCreate,
      retryMs: RETRY_MS,
    });
    const sweeping = setInterval(() => {
      retention.sweep();
      lost.sweep();
      subscribers.sweep();
      void room.look();
    }, SWEEP_MS);
    this.#parts = { replica, replication, lost, subscribers: subscriberWriter, sweeping };
    await reached(() => replication.start(), this.#options);
    await room.look();
    shared.logger.info({ streams: directory.size }, 'streams taken up from the log');
  }

  /** Once restored. */
  get replication(): Replication {
    assert(this.#parts !== null, 'nobody is served before the log was read');
    return this.#parts.replication;
  }

  /** Once restored. */
  get subscribers(): SubscriberWriter {
    assert(this.#parts !== null, 'nobody is served before the log was read');
    return this.#parts.subscribers;
  }

  /** Of one event, with what the log needs to tell events apart. */
  get eventBytesMax(): number {
    return this.#log.bodyBytesMax;
  }

  get failed(): Promise<Error> {
    return Promise.race([this.replication.failed, this.#ended]);
  }

  /**
   * Reads a run for a reader that is below the ring. Null: the event after the cursor is gone.
   * @throws {RequestError} `log_unavailable`
   */
  async replay({
    stream,
    afterSeq,
    bytesMax,
  }: Questions['replay']['ask']): Promise<Questions['replay']['answer']> {
    const { rings, logger } = this.#options;
    const positions = readPositions(rings, stream);
    const known = this.#parts?.replica.ofEpoch(stream.epoch);
    if (positions === null || known === undefined || afterSeq + 1 < (positions.logFloor ?? 1)) return null;
    try {
      const run = await this.#reader.read(known, afterSeq, bytesMax);
      const floor = readPositions(rings, stream)?.logFloor ?? Number.POSITIVE_INFINITY;
      // It is said to be there, and could not be had: that is no reason to say that it is gone (I2).
      if (run === null && afterSeq + 1 >= floor) {
        this.#parts?.lost.missed(known, afterSeq + 1);
        throw new RequestError('log_unavailable');
      }
      return run;
    } catch (error) {
      if (!(error instanceof LogError)) throw error;
      logger.error({ reason: error.message, epoch: stream.epoch, afterSeq }, 'cannot read from the log');
      throw new RequestError('log_unavailable');
    }
  }

  get metricsSources(): LogSources {
    return {
      status: new LogStatus(this.status),
      diskFreeBytes: null,
      replay: () => this.#reader.stats,
    };
  }

  async close(): Promise<void> {
    clearInterval(this.#parts?.sweeping);
    this.#parts?.replication.stop();
    await this.#log.close();
  }
}

/**
 * Brokers and the servers of their log may be started at once: it is tried again for a while, but not where they were
 * reached and refuse.
 * @throws {LogError}
 */
async function reached<T>(attempt: () => Promise<T>, { config, logger }: ReplicatedOptions): Promise<T> {
  const startedAt = performance.now();
  for (;;) {
    try {
      return await attempt();
    } catch (error) {
      if (!(error instanceof LogError) || error.fault === 'broken') throw error;
      if (performance.now() - startedAt >= config.logWaitMs) throw error;
      logger.warn({ reason: error.message }, 'waiting for the log');
      await sleep(RETRY_MS);
    }
  }
}
