/**
 * Opens the log of a broker that keeps its streams. What keeps a log is loaded only where there is one: its libraries are
 * a good part of what a start costs.
 */

import { randomBytes } from 'node:crypto';
import type { Config } from '../config/schema.js';
import type { Logger } from '../log.js';
import type { Rings } from '../ring/rings.js';
import type { Wakes } from '../ring/wake-queue.js';
import type { SharedBuffers } from './create-buffers.js';
import type { LogBacking } from './log-backing.js';
import type { ReplicatedBroker } from './replica/replicated-broker.js';
import type { ClockOrigin } from './steady-clock.js';

export interface OpenLogOptions {
  readonly config: Config;
  readonly buffers: SharedBuffers;
  readonly rings: Rings;
  readonly wakes: Wakes;
  readonly logger: Logger;
  readonly clockOrigin: ClockOrigin;
  /** Unix time, milliseconds. */
  readonly nowMs: () => number;
}

export interface OpenedLog {
  readonly backing: LogBacking;
  /** The same, where brokers share the log; null where this broker has it to itself. */
  readonly shared: ReplicatedBroker | null;
}

/**
 * @returns null: streams are kept in memory alone.
 * @throws {DataDirectoryError} the data directory cannot be used. @throws {LogError} the shared log cannot be reached.
 */
export async function openLog(options: OpenLogOptions): Promise<OpenedLog | null> {
  const { config, buffers, rings, wakes, logger, clockOrigin, nowMs } = options;
  if (config.dataDir !== null) {
    const { Durability } = await import('./log/durability.js');
    const { rings: ringsBuffers, wakes: wakesBuffer } = buffers;
    const parts = { config, rings, buffers: ringsBuffers, wakes: wakesBuffer, logger, clockOrigin };
    return { backing: await Durability.open(config.dataDir, parts), shared: null };
  }
  if (config.log.length > 0) {
    const { ReplicatedBroker } = await import('./replica/replicated-broker.js');
    const parts = { config, rings, wakes, logger, nowMs, randomBytes };
    const shared = await ReplicatedBroker.open(parts);
    return { backing: shared, shared };
  }
  return null;
}
