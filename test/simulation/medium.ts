import { type EventLog, LogError } from '#gapless/storage/event-log.js';
import { MemoryLog, MemoryMedium } from '../support/memory-log.js';
import type { Prng } from '../support/prng.js';
import type { SimulationOptions } from './options.js';

/** What outlives the broker's process, and of that what outlives the machine. */
export class Disk {
  medium = new MemoryMedium();
  /** Whether the machine went down with commits that may be missing now (storage/lmdb/unsynced-mark.ts). */
  mayHaveLost = false;
  #synced: MemoryMedium | null = null;

  /** All that was committed so far outlives the machine, and what comes does only after the next call. */
  sync(): void {
    this.#synced = copyOf(this.medium);
  }

  /** The machine went down. Of what was not synced nothing is left, or all of it. */
  powerOff(isForgetful: boolean): void {
    if (this.#synced === null) return;
    this.mayHaveLost = true;
    if (isForgetful) this.medium = copyOf(this.#synced);
  }
}

/** A medium's streams are changed in place by its log; frames never are. */
function copyOf(medium: MemoryMedium): MemoryMedium {
  const copy = new MemoryMedium();
  for (const [id, stream] of medium.streams) copy.streams.set(id, { ...stream, runs: [...stream.runs] });
  return copy;
}

/** When faults happen to commits; none once they are over. */
export interface CommitFaults {
  readonly prng: Prng;
  readonly options: SimulationOptions;
  /** Whether there are faults at all now. */
  readonly on: boolean;
  /** No commit will succeed before the process has started again. */
  broke(): void;
}

/**
 * A log on the disk whose commits take time and fail as the seed draws: for want of space, by an error that goes away,
 * and in the worst way, when the medium has all of it and says that it has not, and no commit succeeds until the process
 * has started again.
 */
export function withFaults(log: MemoryLog, disk: Disk, faults: CommitFaults): EventLog {
  let isBroken = false;
  const commit = async (): Promise<void> => {
    const { prng, options } = faults;
    if (options.commitMs > 0) await sleep(prng.below(2 * options.commitMs));
    if (isBroken) throw new LogError('broken', 'broken until the next start');
    if (faults.on && prng.chance(options.commitFailChance)) {
      if (!prng.chance(options.tornChance)) {
        throw new LogError(prng.pick(['full', 'io']), 'drawn to fail');
      }
      isBroken = true;
      faults.broke();
      if (prng.chance(0.5)) await log.commit();
      throw new LogError('broken', 'drawn to break');
    }
    await log.commit();
    // The medium has it, and the log thread does not know yet.
    if (options.commitMs > 0) await sleep(prng.below(options.commitMs));
  };
  return new Proxy(log, {
    get(target, name): unknown {
      if (name === 'commit') return commit;
      if (name === 'sync') return async () => disk.sync();
      const value: unknown = Reflect.get(target, name, target);
      return typeof value === 'function' ? value.bind(target) : value;
    },
  });
}

/** Time passes on the thread that asks. */
export function sleep(ms: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, ms));
}
