/**
 * Reads from the durable log, off the edges: a cold page or a checksum must not hold up live delivery.
 */

import { once } from 'node:events';
import { Piscina } from 'piscina';
import { InvariantError } from '../../assert.js';
import type { StreamHandle } from '../../ring/rings.js';
import type { LogRun } from '../../storage/event-log.js';
import type { BrokenInvariant, ReplayTask } from './replay-worker.js';
import { type ReplayStats, SharedReads } from './shared-reads.js';

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

  readonly #pool: Piscina<ReplayTask, LogRun | BrokenInvariant | null>;
  readonly #reads: SharedReads;
  #isClosing = false;
  #fail: (error: Error) => void = () => undefined;

  private constructor(
    pool: Piscina<ReplayTask, LogRun | BrokenInvariant | null>,
    { threads, queueMax }: ReplayPoolOptions,
  ) {
    this.#pool = pool;
    this.#reads = new SharedReads(queueMax);
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

  get stats(): ReplayStats {
    return this.#reads.stats;
  }

  read(stream: StreamHandle, task: ReplayTask): Promise<LogRun | null> {
    return this.#reads.take(`${stream.epoch}.${task.afterSeq}.${task.bytesMax}`, () => this.#read(task));
  }

  async close(): Promise<void> {
    this.#isClosing = true;
    await this.#pool.destroy();
  }

  async #read(task: ReplayTask): Promise<LogRun | null> {
    const run = await this.#pool.run(task);
    if (run === null || !('broken' in run)) return run;
    const error = new InvariantError(run.broken);
    this.#fail(error);
    throw error;
  }
}
