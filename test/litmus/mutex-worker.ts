import { parentPort, workerData } from 'node:worker_threads';
import { lock, unlock } from '#gapless/ring/mutex.js';

export interface MutexWorkerData {
  readonly lock: SharedArrayBuffer;
  /** What the lock guards: two counters that are only ever changed together. */
  readonly guarded: SharedArrayBuffer;
}

export interface MutexOrder {
  readonly turns: number;
  /** Whether the lock is taken at all. */
  readonly locked: boolean;
}

/** Times that the guarded counters were found apart. */
export type MutexReport = number;

/** A holder stays this long now and then, as one that was descheduled does, so that the others have to sleep. */
const LONG_HOLD_MS = 3;
const LONG_HOLD_EVERY = 5000;

const { lock: lockBuffer, guarded } = workerData as MutexWorkerData;
const lockWords = new Int32Array(lockBuffer);
const counters = new Float64Array(guarded);
const nobody = new Int32Array(new SharedArrayBuffer(4));

parentPort?.on('message', ({ turns, locked }: MutexOrder) => {
  let apart = 0;
  for (let turn = 0; turn < turns; turn++) {
    if (locked) lock(lockWords, 0);
    if (counters[0] !== counters[1]) apart++;
    counters[0] = (counters[0] as number) + 1;
    if (turn % LONG_HOLD_EVERY === 0) Atomics.wait(nobody, 0, 0, LONG_HOLD_MS);
    counters[1] = (counters[1] as number) + 1;
    if (locked) unlock(lockWords, 0);
  }
  parentPort?.postMessage(apart satisfies MutexReport);
});
