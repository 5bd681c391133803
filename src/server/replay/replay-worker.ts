/**
 * A thread of the replay pool: reads runs of frames from the durable log, as they go on the wire.
 */

import { parentPort } from 'node:worker_threads';
import { move, transferableSymbol, valueSymbol, workerData } from 'piscina';
import { InvariantError } from '../../assert.js';
import type { LogRun, ReadRange } from '../../storage/event-log.js';
import { openLmdbReader } from '../../storage/lmdb/lmdb-reader.js';

export interface ReplayTask extends ReadRange {
  readonly logId: number;
}

/** Instead of a run: an invariant of ours does not hold on this thread. */
export interface BrokenInvariant {
  readonly broken: string;
}

const reader = openLmdbReader((workerData as { directory: string }).directory);

parentPort?.postMessage('opened');

export default function read({ logId, ...range }: ReplayTask): unknown {
  try {
    const run = reader.read(logId, range);
    return run === null ? null : move(new MovedRun(run));
  } catch (error) {
    // Thrown on, it would pass for a read that failed, and the broker would go on.
    if (error instanceof InvariantError) return { broken: error.message } satisfies BrokenInvariant;
    throw error;
  }
}

/** A run whose bytes change hands instead of being copied. */
class MovedRun {
  readonly #run: LogRun;

  constructor(run: LogRun) {
    this.#run = run;
  }

  get [transferableSymbol](): readonly unknown[] {
    return [this.#run.frames.buffer];
  }

  get [valueSymbol](): LogRun {
    return this.#run;
  }
}
