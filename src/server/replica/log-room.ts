/**
 * Whether a replicated log has room. While it has none, publishes are refused at once, without asking the log about each.
 * Some room is kept free: for entries that make room, and for all others that are not publishes.
 *
 * Single owner: the main thread.
 */

import type { Logger } from '../../log.js';
import { LOG_FULL, LOG_HEALTHY, LogCounter, type LogStatus } from '../../ring/log-status.js';
import { LogError } from '../../storage/event-log.js';
import type { ReplicatedLog } from '../../storage/replicated-log.js';

export interface LogRoomOptions {
  readonly log: ReplicatedLog;
  readonly status: LogStatus;
  readonly logger: Logger;
}

/** What publishes leave free of a log with a limit: a share of it, but no more than so many bytes. */
const FREE_SHARE = 0.05;
const FREE_BYTES_MAX = 16 * 1024 * 1024;

export class LogRoom {
  readonly #options: LogRoomOptions;
  #isLooking = false;

  constructor(options: LogRoomOptions) {
    this.#options = options;
  }

  /** The log has refused an append for want of room. The next look tells whether it still has none. */
  refused(): void {
    this.#become(true);
  }

  /** Call it each second. */
  async look(): Promise<void> {
    if (this.#isLooking) return;
    this.#isLooking = true;
    const { log, status, logger } = this.#options;
    try {
      const { bytes, bytesMax } = await log.usage();
      status.set(LogCounter.sizeBytes, bytes);
      status.set(LogCounter.capacityBytes, bytesMax ?? Number.POSITIVE_INFINITY);
      this.#become(bytesMax !== null && bytes > bytesMax - Math.min(bytesMax * FREE_SHARE, FREE_BYTES_MAX));
    } catch (error) {
      if (!(error instanceof LogError)) throw error;
      logger.debug({ reason: error.message }, 'cannot look how full the log is');
    } finally {
      this.#isLooking = false;
    }
  }

  /** Another fault of the log stays as it is: `Replication` sets and clears it. */
  #become(isFull: boolean): void {
    const { status, logger } = this.#options;
    if (status.fault !== (isFull ? LOG_HEALTHY : LOG_FULL)) return;
    status.fault = isFull ? LOG_FULL : LOG_HEALTHY;
    if (isFull) logger.error('the log is full');
    else logger.info('the log has room again');
  }
}
