/**
 * Reads of a log for readers below the ring, whichever log it is. Identical reads are one, whoever asks, from when the
 * first is asked for until it has ended; beyond a number that are under way the others wait for their turn.
 */

import type { LogRun } from '../../storage/event-log.js';
import { Turns } from '../turns.js';

/** How reading goes, for metrics. */
export interface ReplayStats {
  readonly reads: number;
  /** Reads that were answered by one that had been asked for already. */
  readonly shared: number;
  readonly bytes: number;
  readonly failed: number;
  /** Reads under way and waiting. */
  readonly depth: number;
}

export class SharedReads {
  /** Under way or waiting, by what they read. Bounded by the subscribers: each has at most one open. */
  readonly #open = new Map<string, Promise<LogRun | null>>();
  readonly #turns: Turns;
  readonly #counts = { reads: 0, shared: 0, bytes: 0, failed: 0 };

  /** @param underWayMax how many reads are under way at a time. */
  constructor(underWayMax: number) {
    this.#turns = new Turns(underWayMax);
  }

  get stats(): ReplayStats {
    return { ...this.#counts, depth: this.#open.size };
  }

  /** @param key the same for reads that are identical. @returns what `read` does, or what an identical read does. */
  take(key: string, read: () => Promise<LogRun | null>): Promise<LogRun | null> {
    const open = this.#open.get(key);
    if (open !== undefined) {
      this.#counts.shared++;
      return open;
    }
    const reading = this.#turns.take(() => this.#counted(read)).finally(() => this.#open.delete(key));
    this.#open.set(key, reading);
    return reading;
  }

  async #counted(read: () => Promise<LogRun | null>): Promise<LogRun | null> {
    this.#counts.reads++;
    try {
      const run = await read();
      this.#counts.bytes += run?.frames.length ?? 0;
      return run;
    } catch (error) {
      this.#counts.failed++;
      throw error;
    }
  }
}
