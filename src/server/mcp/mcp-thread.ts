/**
 * The thread of the MCP front as the main thread holds it.
 */

import { MessageChannel, type MessagePort, Worker } from 'node:worker_threads';
import type { Config } from '../../config/schema.js';
import type { RingsBuffers } from '../../ring/rings.js';
import type { Coordinator } from '../coordinator.js';
import type { Answer, Question } from '../messages.js';
import type { ClockOrigin } from '../steady-clock.js';

/** What the thread is started with. */
export interface McpSetup {
  readonly config: Config;
  readonly rings: RingsBuffers;
  readonly wakes: SharedArrayBuffer;
  /** How the durable log is doing; null without one. */
  readonly logStatus: SharedArrayBuffer | null;
  /** Of one event, in a log that brokers share; null without one. */
  readonly eventBytesMax: number | null;
  readonly clockOrigin: ClockOrigin;
  /** See front-counts.ts. */
  readonly counts: SharedArrayBuffer;
  /** To the edges, in their order. */
  readonly edges: readonly MessagePort[];
}

export type McpCommand = Answer | { readonly kind: 'stop' };
export type McpMessage =
  | Question
  | { readonly kind: 'stopped' }
  | { readonly kind: 'failed'; readonly message: string; readonly stack: string | undefined };

export class McpThread {
  /** Resolves when the thread dies or cannot go on. */
  readonly failed: Promise<Error>;
  /** The edges' ends of their lines to it, to be handed over. */
  readonly edgePorts: readonly MessagePort[];

  readonly #worker: Worker;
  readonly #coordinator: Coordinator;
  #stopping: Promise<void> | null = null;
  #stopped: () => void = () => undefined;
  #fail: (error: Error) => void = () => undefined;

  constructor(setup: Omit<McpSetup, 'edges'>, coordinator: Coordinator) {
    this.#coordinator = coordinator;
    this.failed = new Promise((resolve) => {
      this.#fail = resolve;
    });
    const channels = Array.from({ length: setup.config.threads }, () => new MessageChannel());
    this.edgePorts = channels.map(({ port2 }) => port2);
    const edges = channels.map(({ port1 }) => port1);
    this.#worker = new Worker(new URL('./mcp-worker.js', import.meta.url), {
      workerData: { ...setup, edges } satisfies McpSetup,
      transferList: edges,
      name: 'mcp',
    });
    this.#worker.on('message', (message: McpMessage) => this.#received(message));
    this.#worker.on('error', (error) => this.#fail(error));
    this.#worker.on('exit', (code) => {
      this.#stopped();
      if (this.#stopping === null) this.#fail(new Error(`the MCP front ended with code ${code}`));
    });
  }

  /** Ends sessions' connections and the thread. */
  stop(): Promise<void> {
    this.#stopping ??= this.#stop();
    return this.#stopping;
  }

  async #stop(): Promise<void> {
    const stopped = new Promise<void>((resolve) => {
      this.#stopped = resolve;
    });
    this.#send({ kind: 'stop' });
    await stopped;
    await this.#worker.terminate();
  }

  #send(command: McpCommand): void {
    this.#worker.postMessage(command);
  }

  #received(message: McpMessage): void {
    switch (message.kind) {
      case 'question':
        void this.#coordinator.answer(message).then((answer) => this.#send(answer));
        break;
      case 'stopped':
        this.#stopped();
        break;
      case 'failed':
        this.#fail(Object.assign(new Error(message.message), { stack: message.stack }));
    }
  }
}
