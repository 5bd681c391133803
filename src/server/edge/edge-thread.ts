/**
 * An edge thread as the main thread holds it.
 */

import { Worker } from 'node:worker_threads';
import type { KeyMaterial } from '../../auth/key-material.js';
import type { StreamRef } from '../../broker/edge-stream.js';
import type { Coordinator } from '../coordinator.js';
import type { Answer, EdgeCommand, EdgeMessage, EdgeSetup } from '../messages.js';
import type { Reports, ReportTopic } from './edge-report.js';

/** Nobody waits longer for an edge whose loop is busy. */
const REPORT_MS_MAX = 1000;
/**
 * What an edge makes and drops within a turn fits into a third of this, which is in use at a time. V8's own limit is four
 * times as much, and an edge would fill it before it looks what of it is garbage.
 */
const YOUNG_GENERATION_MB_MAX = 12;

export class EdgeThread {
  /** Resolves when the thread dies or cannot go on. */
  readonly failed: Promise<Error>;

  readonly #worker: Worker;
  readonly #coordinator: Coordinator;
  readonly #waiting = new Map<EdgeMessage['kind'], (message: never) => void>();
  readonly #reports = new Map<number, (report: never) => void>();
  /** To publishes that ended in this turn. */
  readonly #answers: Answer[] = [];
  #lastReport = 0;
  #stopping: Promise<void> | null = null;
  #fail: (error: Error) => void = () => undefined;

  constructor(setup: EdgeSetup, coordinator: Coordinator) {
    this.#coordinator = coordinator;
    this.failed = new Promise((resolve) => {
      this.#fail = resolve;
    });
    this.#worker = new Worker(new URL('./edge.js', import.meta.url), {
      workerData: setup,
      transferList: setup.mcp === null ? [] : [setup.mcp],
      name: `edge-${setup.edge}`,
      resourceLimits: { maxYoungGenerationSizeMb: YOUNG_GENERATION_MB_MAX },
    });
    this.#worker.on('message', (message: EdgeMessage) => this.#received(message));
    this.#worker.on('error', (error) => this.#fail(error));
    this.#worker.on('exit', (code) => {
      if (this.#stopping === null) this.#fail(new Error(`edge ${setup.edge} ended with code ${code}`));
    });
  }

  /** Listens there and nowhere else. @throws an error with the code EADDRINUSE when the edge cannot have the port. */
  async listen(port: number): Promise<void> {
    const listening = this.#next('listening');
    const refused = this.#next('listenFailed');
    this.#send({ kind: 'listen', port });
    const message = await Promise.race([listening, refused, this.failed]);
    if (message instanceof Error) throw message;
    if (message.kind === 'listening') return;
    throw Object.assign(new Error(`cannot listen on port ${port}`), { code: 'EADDRINUSE' });
  }

  /** Asks the edge about itself; null when it is too busy to say. */
  report<T extends ReportTopic>(topic: T, ask: Reports[T]['ask']): Promise<Reports[T]['report'] | null> {
    const id = ++this.#lastReport;
    return new Promise((resolve) => {
      const late = setTimeout(() => answered(null), REPORT_MS_MAX);
      const answered = (report: Reports[T]['report'] | null): void => {
        clearTimeout(late);
        this.#reports.delete(id);
        resolve(report);
      };
      this.#reports.set(id, answered);
      this.#send({ kind: 'report', id, topic, ask });
    });
  }

  tellMade(ref: StreamRef): void {
    this.#send({ kind: 'streamMade', ref });
  }

  releaseCursor(holder: number): void {
    this.#send({ kind: 'releaseCursor', holder });
  }

  renewCertificate(): void {
    this.#send({ kind: 'renewCertificate' });
  }

  useKeys(keys: KeyMaterial): void {
    this.#send({ kind: 'keys', keys });
  }

  async drain(drainMs: number): Promise<void> {
    const drained = this.#next('drained');
    this.#send({ kind: 'drain', drainMs });
    await drained;
  }

  /** Has the edge close its sockets and ends the thread. */
  stop(): Promise<void> {
    this.#stopping ??= this.#stop();
    return this.#stopping;
  }

  async #stop(): Promise<void> {
    const closed = this.#next('stopped');
    this.#send({ kind: 'stop' });
    await closed;
    await this.#worker.terminate();
  }

  #send(command: EdgeCommand): void {
    this.#worker.postMessage(command);
  }

  /** Publishes that went into one entry of the log end together, and are answered in one message. */
  #answerPublish(answer: Answer): void {
    if (this.#answers.push(answer) > 1) return;
    process.nextTick(() => this.#send({ kind: 'answers', answers: this.#answers.splice(0) }));
  }

  #next<K extends EdgeMessage['kind']>(kind: K): Promise<Extract<EdgeMessage, { kind: K }>> {
    return new Promise((resolve) => this.#waiting.set(kind, resolve));
  }

  #received(message: EdgeMessage): void {
    switch (message.kind) {
      case 'question':
        void this.#coordinator.answer(message).then((answer) => this.#send(answer));
        break;
      case 'publishes':
        for (const question of message.questions) {
          void this.#coordinator.answer(question).then((answer) => this.#answerPublish(answer));
        }
        break;
      case 'report':
        this.#reports.get(message.id)?.(message.report as never);
        break;
      case 'activity':
        this.#coordinator.noted(message.batch);
        break;
      case 'handBack':
        this.#coordinator.handedBack(message.back);
        break;
      case 'failed':
        this.#fail(Object.assign(new Error(message.message), { stack: message.stack }));
        break;
      default:
        this.#waiting.get(message.kind)?.(message as never);
        this.#waiting.delete(message.kind);
    }
  }
}
