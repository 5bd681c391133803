/**
 * A thread of the replay pool: reads runs of frames from the durable log, as they go on the wire.
 */

import { move, transferableSymbol, valueSymbol, workerData } from 'piscina';
import type { LogRun } from '../storage/event-log.js';
import { openLmdbReader } from '../storage/lmdb-reader.js';

export interface ReplayTask {
  readonly logId: number;
  readonly afterSeq: number;
  readonly bytesMax: number;
  /** Lowest seq that can be read. */
  readonly floor: number;
}

const reader = openLmdbReader((workerData as { directory: string }).directory);

export default function read({ logId, afterSeq, bytesMax, floor }: ReplayTask): unknown {
  const run = reader.read(logId, afterSeq, bytesMax, floor);
  return run === null ? null : move(new MovedRun(run));
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
