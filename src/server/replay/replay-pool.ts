/**
 * Reads from the durable log, off the edges: a cold page or a checksum must not hold up live delivery. Identical reads
 * in flight are one, whichever edges ask; more than the queue takes wait their turn.
 */

import { once } from 'node:events';
import { Piscina } from 'piscina';
import { InvariantError } from '../../assert.js';
import type { StreamHandle } from '../../ring/rings.js';
import type { LogRun } from '../../storage/event-log.js';
import type { BrokenInvariant, ReplayTask } from './replay-worker.js';

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
  /**
   * Resolves when the pool lacks a thread for good, or one dies outside of a read, or an invariant is broken in one. A
   * thread that dies within a read is replaced, and that read fails; but where the new one cannot start, the pool would
   * have all reads wait for ever.
   */
  readonly failed: Promise<Error>;
  readonly stats: ReplayStats = { reads: 0, shared: 0, bytes: 0, failed: 0 };

  readonly #pool: Piscina<ReplayTask, LogRun | BrokenInvariant | null>;
  readonly #inFlight = new Map<string, Promise<LogRun | null>>();
  readonly #queueMax: number;
  /** Those who wait because the queue is full, first come first served. Bounded by the subscribers. */
  readonly #waiting: (() => void)[] = [];

  #isClosing = false;
  #fail: (error: Error) => void = () => undefined;

  private constructor(
    pool: Piscina<ReplayTask, LogRun | BrokenInvariant | null>,
    { threads, queueMax }: ReplayPoolOptions,
  ) {
    this.#pool = pool;
    this.#queueMax = queueMax;
    this.failed = new Promise((resolve) => {
      this.#fail = resolve;
      pool.on('error', resolve);
      pool.on('workerDestroy', () =>
        setImmediate(() => {
          if (this.#isClosing || pool.threads.length === threads) return;
          resolve(new Error('a replay thread died, and its successor could not start'));
        }),
      );
    });
  }

  /**
   * Resolves when all threads have the log open: one that is ended while it opens it takes the process with it.
   *
   * @throws what kept a thread from opening it.
   */
  static async start(options: ReplayPoolOptions): Promise<ReplayPool> {
    const { directory, threads, queueMax } = options;
    const pool = new Piscina<ReplayTask, LogRun | BrokenInvariant | null>({
      filename: new URL('./replay-worker.js', import.meta.url).href,
      minThreads: threads,
      maxThreads: threads,
      maxQueue: queueMax + threads,
      workerData: { directory },
    });
    const started = new ReplayPool(pool, options);
    for (let opened = 0; opened < threads; opened++) {
      const failure = await Promise.race([once(pool, 'message'), started.failed]);
      if (failure instanceof Error) throw failure;
    }
    return started;
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
    this.#isClosing = true;
    await this.#pool.destroy();
  }

  async #read(task: ReplayTask): Promise<LogRun | null> {
    this.stats.reads++;
    try {
      const run = await this.#pool.run(task);
      if (run !== null && 'broken' in run) {
        const error = new InvariantError(run.broken);
        this.#fail(error);
        throw error;
      }
      this.stats.bytes += run?.frames.length ?? 0;
      return run;
    } catch (error) {
      this.stats.failed++;
      throw error;
    }
  }
}
