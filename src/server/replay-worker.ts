/**
 * A thread of the replay pool: reads runs of frames from the durable log, as they go on the wire.
 */

import { parentPort } from 'node:worker_threads';
import { move, transferableSymbol, valueSymbol, workerData } from 'piscina';
import type { LogRun, ReadRange } from '../storage/event-log.js';
import { openLmdbReader } from '../storage/lmdb-reader.js';

export interface ReplayTask extends ReadRange {
  readonly logId: number;
}

const reader = openLmdbReader((workerData as { directory: string }).directory);

parentPort?.postMessage('opened');

export default function read({ logId, ...range }: ReplayTask): unknown {
  const run = reader.read(logId, range);
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
