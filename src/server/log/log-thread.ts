/**
 * The log thread as the main thread holds it.
 */

import { Worker } from 'node:worker_threads';
import { LogStatus } from '../../ring/log-status.js';
import type { LoggedStream } from '../../storage/event-log.js';
import { LogLine } from './log-line.js';
import type { LogMessage, LogSetup } from './log-messages.js';

export class LogThread extends LogLine {
  /** Resolves when the thread dies. */
  readonly failed: Promise<Error>;

  readonly #worker: Worker;
  #stopping: Promise<void> | null = null;
  #loaded: (streams: readonly LoggedStream[]) => void = () => undefined;
  #ended: () => void = () => undefined;
  #fail: (error: Error) => void = () => undefined;

  constructor(setup: LogSetup) {
    const worker = new Worker(new URL('./log-worker.js', import.meta.url), {
      workerData: setup,
      name: 'log',
    });
    super(new LogStatus(setup.status), (command) => worker.postMessage(command));
    this.#worker = worker;
    this.failed = new Promise((resolve) => {
      this.#fail = resolve;
    });
    worker.on('message', (message: LogMessage) => this.#received(message));
    worker.on('error', (error) => this.#fail(error));
    worker.on('exit', (code) => {
      if (this.#stopping === null) this.#fail(new Error(`the log thread ended with code ${code}`));
    });
  }

  /**
   * The streams that the log has. Once.
   * @throws what kept the log from opening.
   */
  async load(): Promise<readonly LoggedStream[]> {
    const loaded = new Promise<readonly LoggedStream[]>((resolve) => {
      this.#loaded = resolve;
    });
    const streams = await Promise.race([loaded, this.failed]);
    if (streams instanceof Error) throw streams;
    return streams;
  }

  /** Commits what is there and ends the thread. */
  stop(): Promise<void> {
    this.#stopping ??= this.#stop();
    return this.#stopping;
  }

  async #stop(): Promise<void> {
    const ended = new Promise<void>((resolve) => {
      this.#ended = resolve;
    });
    this.#worker.postMessage({ kind: 'stop' });
    await Promise.race([ended, this.failed]);
    await this.#worker.terminate();
  }

  #received(message: LogMessage): void {
    switch (message.kind) {
      case 'loaded':
        return this.#loaded(message.streams);
      case 'done':
        return this.done(message);
      case 'stopped':
        return this.#ended();
    }
  }
}
