/**
 * The log thread as the main thread holds it: the directory's journal, and the way to a stream's number in the log.
 */

import { Worker } from 'node:worker_threads';
import type { StreamRef } from '../broker/edge-stream.js';
import type { Journal } from '../broker/journal.js';
import { RequestError } from '../errors.js';
import { LOG_FULL, LOG_HEALTHY, LogStatus } from '../ring/log-status.js';
import type { LoggedStream } from '../storage/event-log.js';
import type { AdoptedStream, LogCommand, LogMessage, LogSetup } from './log-messages.js';

export class LogThread implements Journal {
  /** Resolves when the thread dies. */
  readonly failed: Promise<Error>;

  readonly #worker: Worker;
  readonly #status: LogStatus;
  readonly #logIds = new Map<string, number>();
  /** What was asked and is not committed yet, by the id of the command. */
  readonly #asked = new Map<number, (logId: number | null) => void>();
  /** The newest of those about each name. */
  readonly #unsettled = new Map<string, Promise<void>>();
  #lastId = 0;
  #stopping: Promise<void> | null = null;
  #loaded: (streams: readonly LoggedStream[]) => void = () => undefined;
  #ended: () => void = () => undefined;
  #fail: (error: Error) => void = () => undefined;

  constructor(setup: LogSetup) {
    this.#status = new LogStatus(setup.status);
    this.failed = new Promise((resolve) => {
      this.#fail = resolve;
    });
    this.#worker = new Worker(new URL('./log-worker.js', import.meta.url), {
      workerData: setup,
      name: 'log',
    });
    this.#worker.on('message', (message: LogMessage) => this.#received(message));
    this.#worker.on('error', (error) => this.#fail(error));
    this.#worker.on('exit', (code) => {
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

  /** Gives the log thread the slots of the streams that it loaded. */
  adopt(streams: readonly { ref: StreamRef; logged: LoggedStream }[]): void {
    const adopted: AdoptedStream[] = streams.map(({ ref, logged }) => {
      this.#logIds.set(ref.epoch, logged.id);
      const { slot, generation, epoch } = ref;
      const ages = ref.config.retention.ageMs > 0;
      return { handle: { slot, generation, epoch }, logId: logged.id, head: logged.head, ages };
    });
    this.#send({ kind: 'adopt', streams: adopted });
  }

  /** A stream's number in the log; undefined when it is gone. */
  logIdOf(epoch: string): number | undefined {
    return this.#logIds.get(epoch);
  }

  created({ name, slot, generation, epoch, config }: StreamRef): void {
    const handle = { slot, generation, epoch };
    this.#ask(name, (id) => ({ kind: 'create', id, handle, stream: { name, epoch, config } })).then((logId) =>
      this.#logIds.set(epoch, logId as number),
    );
  }

  closed({ name, slot }: StreamRef): void {
    void this.#ask(name, (id) => ({ kind: 'close', id, slot }));
  }

  removed({ name, slot, epoch }: StreamRef): void {
    this.#logIds.delete(epoch);
    void this.#ask(name, (id) => ({ kind: 'remove', id, slot }));
  }

  settled(name: string): Promise<void> | void {
    const unsettled = this.#unsettled.get(name);
    if (unsettled === undefined || this.#status.fault === LOG_HEALTHY) return unsettled;
    const code = this.#status.fault === LOG_FULL ? 'log_full' : 'log_unavailable';
    throw new RequestError(code, undefined, {}, { 'Retry-After': '1' });
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
    this.#send({ kind: 'stop' });
    await Promise.race([ended, this.failed]);
    await this.#worker.terminate();
  }

  #ask(name: string, command: (id: number) => LogCommand): Promise<number | null> {
    const id = ++this.#lastId;
    const done = new Promise<number | null>((resolve) => this.#asked.set(id, resolve));
    const settled = done.then(() => {
      if (this.#unsettled.get(name) === settled) this.#unsettled.delete(name);
    });
    this.#unsettled.set(name, settled);
    this.#send(command(id));
    return done;
  }

  #send(command: LogCommand): void {
    this.#worker.postMessage(command);
  }

  #received(message: LogMessage): void {
    switch (message.kind) {
      case 'loaded':
        return this.#loaded(message.streams);
      case 'done':
        this.#asked.get(message.id)?.(message.logId);
        this.#asked.delete(message.id);
        return;
      case 'stopped':
        return this.#ended();
    }
  }
}
