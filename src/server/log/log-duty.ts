/**
 * What the log thread does from its start to its end: it commits while there is something to commit, and then waits for
 * an edge's append or for a command. Clocks and the way back to the coordinator are handed in.
 */

import { LOG_EDGE, type Wakes } from '../../ring/wake-queue.js';
import { LogError } from '../../storage/event-log.js';
import type { CommitLoop } from './commit-loop.js';
import type { LogCommand, LogMessage } from './log-messages.js';

/** How long a log that cannot commit is left alone before it is asked again. */
const RETRY_MS = 250;

export interface LogDutyOptions {
  readonly wakes: Wakes;
  readonly loop: CommitLoop;
  readonly send: (message: LogMessage) => void;
  readonly sleep: (ms: number) => Promise<void>;
  readonly commitFailed: (error: LogError) => void;
}

export class LogDuty {
  readonly #options: LogDutyOptions;
  #stopping = false;
  /** Whether an edge's append will nudge the loop: one waiter at a time, however often a command ends its wait. */
  #waiting = false;
  /** Ends the wait of the loop. */
  #nudge: () => void = () => undefined;

  constructor(options: LogDutyOptions) {
    this.#options = options;
  }

  received(command: LogCommand): void {
    this.#obey(command);
    this.#nudge();
  }

  /** Has the log drop what retention does not ask to keep. Now and then. */
  applyRetention(): void {
    this.#options.loop.applyRetention();
    this.#nudge();
  }

  /** Commits until it is told to stop, and all is committed or the log fails. */
  async run(): Promise<void> {
    const { wakes, loop, sleep, commitFailed } = this.#options;
    for (;;) {
      const ticket = wakes.ticket(LOG_EDGE);
      try {
        if (await loop.commit()) continue;
      } catch (error) {
        if (!(error instanceof LogError)) throw error;
        commitFailed(error);
        if (this.#stopping) return;
        await sleep(RETRY_MS);
        continue;
      }
      if (this.#stopping) return;
      await this.#news(ticket);
    }
  }

  #obey(command: LogCommand): void {
    const { loop, send } = this.#options;
    switch (command.kind) {
      case 'adopt':
        for (const { handle, logId, head, ages, rejects } of command.streams)
          loop.adopt(handle, { id: logId, head, ages, rejects });
        break;
      case 'create':
        loop.create(command.handle, command.stream, (logId) => send({ kind: 'done', id: command.id, logId }));
        break;
      case 'acknowledge':
        loop.acknowledge(command, () => send({ kind: 'done', id: command.id, logId: null }));
        break;
      case 'close':
        loop.close(command.slot, () => send({ kind: 'done', id: command.id, logId: null }));
        break;
      case 'remove':
        loop.remove(command.slot, () => send({ kind: 'done', id: command.id, logId: null }));
        break;
      case 'stop':
        this.#stopping = true;
    }
  }

  /** Resolves when an edge has appended something since the ticket was read, or a command has come. */
  async #news(ticket: number): Promise<void> {
    if (!this.#waiting) {
      const woken = this.#options.wakes.wait(LOG_EDGE, ticket);
      if (woken === null) return;
      this.#waiting = true;
      void woken.then(() => {
        this.#waiting = false;
        this.#nudge();
      });
    }
    await new Promise<void>((resolve) => {
      this.#nudge = resolve;
    });
  }
}
