/**
 * Reads from the durable log, off the edges: a cold page or a checksum must not hold up live delivery. Identical reads
 * in flight are one, whichever edges ask; more than the queue takes wait their turn.
 */

import { once } from 'node:events';
import { Piscina } from 'piscina';
import type { StreamHandle } from '../ring/rings.js';
import type { LogRun } from '../storage/event-log.js';
import type { ReplayTask } from './replay-worker.js';

/** How the pool is doing, for metrics. */
export interface ReplayStats {
  reads: number;
  /** Reads that were answered by one that was under way. */
  shared: number;
  bytes: number;
  failed: number;
}

export interface ReplayPoolOptions {
  readonly directory: string;
  readonly threads: number;
  /** Reads in flight; more of them wait. */
  readonly queueMax: number;
}

export class ReplayPool {
  readonly stats: ReplayStats = { reads: 0, shared: 0, bytes: 0, failed: 0 };

  readonly #pool: Piscina<ReplayTask, LogRun | null>;
  readonly #inFlight = new Map<string, Promise<LogRun | null>>();
  readonly #queueMax: number;
  /** Those who wait because the queue is full, first come first served. Bounded by the subscribers. */
  readonly #waiting: (() => void)[] = [];

  private constructor(pool: Piscina<ReplayTask, LogRun | null>, queueMax: number) {
    this.#pool = pool;
    this.#queueMax = queueMax;
  }

  /**
   * Resolves when all threads have the log open: one that is ended while it opens it takes the process with it.
   *
   * @throws what kept a thread from opening it.
   */
  static async start({ directory, threads, queueMax }: ReplayPoolOptions): Promise<ReplayPool> {
    const pool = new Piscina<ReplayTask, LogRun | null>({
      filename: new URL('./replay-worker.js', import.meta.url).href,
      minThreads: threads,
      maxThreads: threads,
      maxQueue: queueMax + threads,
      workerData: { directory },
    });
    for (let opened = 0; opened < threads; opened++) await once(pool, 'message');
    return new ReplayPool(pool, queueMax);
  }

  /** Reads in flight and waiting. */
  get depth(): number {
    return this.#inFlight.size + this.#waiting.length;
  }

  async read(stream: StreamHandle, task: ReplayTask): Promise<LogRun | null> {
    const key = `${stream.epoch}.${task.afterSeq}.${task.bytesMax}`;
    for (let waited = false; ; waited = true) {
      const underWay = this.#inFlight.get(key);
      if (underWay !== undefined) {
        // It takes no place in the queue after all.
        if (waited) this.#waiting.shift()?.();
        this.stats.shared++;
        return underWay;
      }
      if (this.#inFlight.size < this.#queueMax) break;
      await new Promise<void>((resolve) => this.#waiting.push(resolve));
    }
    const reading = this.#read(task).finally(() => {
      this.#inFlight.delete(key);
      this.#waiting.shift()?.();
    });
    this.#inFlight.set(key, reading);
    return reading;
  }

  async close(): Promise<void> {
    await this.#pool.destroy();
  }

  async #read(task: ReplayTask): Promise<LogRun | null> {
    this.stats.reads++;
    try {
      const run = await this.#pool.run(task);
      this.stats.bytes += run?.frames.length ?? 0;
      return run;
    } catch (error) {
      this.stats.failed++;
      throw error;
    }
  }
}
