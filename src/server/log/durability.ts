/**
 * The durable side of a broker: the data directory, the log thread that writes to it and the pool that reads.
 */

import { statfsSync } from 'node:fs';
import type { Directory } from '../../broker/directory.js';
import type { Journal } from '../../broker/journal.js';
import type { NamedSubscribers } from '../../broker/named-subscribers.js';
import type { Config } from '../../config/schema.js';
import type { Logger } from '../../log.js';
import type { LogSources } from '../../metrics/log-metrics.js';
import { createLogStatus, LogStatus } from '../../ring/log-status.js';
import type { Rings, RingsBuffers } from '../../ring/rings.js';
import { type DataDirectory, openDataDirectory } from '../../storage/directory/data-directory.js';
import type { LogBacking } from '../log-backing.js';
import type { Questions } from '../messages.js';
import { ReplayPool } from '../replay/replay-pool.js';
import { answerReplay, type ReplaySource } from '../replay/replay-question.js';
import type { ReplayStats } from '../replay/shared-reads.js';
import type { ClockOrigin } from '../steady-clock.js';
import { LogThread } from './log-thread.js';

const NO_REPLAY: ReplayStats = { reads: 0, shared: 0, bytes: 0, failed: 0, depth: 0 };

export interface DurabilityOptions {
  readonly config: Config;
  readonly rings: Rings;
  readonly buffers: RingsBuffers;
  readonly wakes: SharedArrayBuffer;
  readonly logger: Logger;
  readonly clockOrigin: ClockOrigin;
}

export class Durability implements LogBacking {
  readonly status: SharedArrayBuffer;
  readonly log: LogThread;

  readonly #data: DataDirectory;
  readonly #options: DurabilityOptions;
  /** Opened when the log thread has the file open, and perhaps made. */
  #pool: ReplayPool | null = null;

  private constructor(data: DataDirectory, options: DurabilityOptions) {
    const { config, buffers, wakes, clockOrigin } = options;
    this.#data = data;
    this.#options = options;
    this.status = createLogStatus();
    this.log = new LogThread({
      config,
      directory: data.path,
      rings: buffers,
      wakes,
      status: this.status,
      clockOrigin,
    });
  }

  /** @throws {DataDirectoryError} when the directory cannot be used. */
  static async open(path: string, options: DurabilityOptions): Promise<Durability> {
    const { config, logger } = options;
    const data = await openDataDirectory(path, {
      waitMs: config.dataDirWaitMs,
      waiting: (pid) => logger.info({ pid, waitMs: config.dataDirWaitMs }, 'waiting for the data directory'),
    });
    return new Durability(data, options);
  }

  /**
   * Brings back what the log has.
   * @throws {LogCorruption} when it cannot be trusted.
   */
  async restore(directory: Directory, named: NamedSubscribers): Promise<void> {
    const { config, logger } = this.#options;
    const streams = await this.log.load();
    this.#data.storeIsMade();
    this.log.adopt(streams.map((logged) => ({ ref: directory.restore(logged), logged })));
    for (const { epoch, acked } of streams) named.restore(epoch, acked);
    this.#pool = await ReplayPool.start({
      directory: this.#data.path,
      threads: config.replayThreads,
      queueMax: config.replayQueueMax,
    });
    if (streams.length > 0) logger.info({ streams: streams.length }, 'streams restored');
  }

  /**
   * Reads a run for a reader that is below the ring. Null: the event after the cursor is gone.
   * @throws {RequestError} `log_unavailable`
   */
  async replay(ask: Questions['replay']['ask']): Promise<Questions['replay']['answer']> {
    const { rings, logger } = this.#options;
    const pool = this.#pool;
    if (pool === null) return null;
    const read: ReplaySource['read'] = (stream, task) => pool.read(stream, task);
    return answerReplay(ask, { rings, line: this.log, read, logger });
  }

  /** Resolves when one of its threads dies and the broker cannot go on without it. Once restored. */
  get failed(): Promise<Error> {
    return Promise.race([this.log, this.#pool].flatMap((part) => (part === null ? [] : [part.failed])));
  }

  get journal(): Journal {
    return this.log;
  }

  /** What the metrics show. */
  get metricsSources(): LogSources {
    return {
      status: new LogStatus(this.status),
      diskFreeBytes: () => diskFreeBytes(this.#data.path),
      replay: () => this.#pool?.stats ?? NO_REPLAY,
    };
  }

  async close(): Promise<void> {
    await this.log.stop();
    await this.#pool?.close();
    await this.#data.close();
  }
}

/** A directory that is not there any more has nothing left. */
function diskFreeBytes(path: string): number {
  try {
    const { bavail, bsize } = statfsSync(path);
    return bavail * bsize;
  } catch {
    return 0;
  }
}
