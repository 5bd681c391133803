/**
 * The coordinator's line to the log thread: the directory's journal, and the way to a stream's number in the log.
 */

import type { StreamRef } from '../../broker/edge-stream.js';
import type { Journal } from '../../broker/journal.js';
import { logRefusal } from '../../broker/log-refusal.js';
import { LOG_HEALTHY, type LogStatus } from '../../ring/log-status.js';
import type { LoggedStream } from '../../storage/event-log.js';
import type { AdoptedStream, LogCommand, LogMessage } from './log-messages.js';

export class LogLine implements Journal {
  readonly #status: LogStatus;
  readonly #send: (command: LogCommand) => void;
  readonly #logIds = new Map<string, number>();
  /** What was asked and is not committed yet, by the id of the command. */
  readonly #asked = new Map<number, (logId: number | null) => void>();
  /** By name: settles when the newest command about it is committed. */
  readonly #unsettled = new Map<string, Promise<void>>();
  #lastId = 0;

  constructor(status: LogStatus, send: (command: LogCommand) => void) {
    this.#status = status;
    this.#send = send;
  }

  /** Gives the log thread the slots of the streams that it loaded. */
  adopt(streams: readonly { ref: StreamRef; logged: LoggedStream }[]): void {
    const adopted: AdoptedStream[] = streams.map(({ ref, logged }) => {
      this.#logIds.set(ref.epoch, logged.id);
      const { slot, generation, epoch } = ref;
      const { retention, overflow } = ref.config;
      const handle = { slot, generation, epoch };
      const { id, head } = logged;
      return { handle, logId: id, head, ages: retention.ageMs > 0, rejects: overflow === 'reject' };
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

  acknowledged({ name, slot }: StreamRef, subscriber: string, cursor: string | null): void {
    void this.#ask(name, (id) => ({ kind: 'acknowledge', id, slot, subscriber, cursor }));
  }

  closed({ name, slot }: StreamRef): void {
    void this.#ask(name, (id) => ({ kind: 'close', id, slot }));
  }

  removed({ name, slot, epoch }: StreamRef): void {
    this.#logIds.delete(epoch);
    // Its creation may be committed until then, and tell its number.
    this.#ask(name, (id) => ({ kind: 'remove', id, slot })).then(() => this.#logIds.delete(epoch));
  }

  hasCreated({ epoch }: StreamRef): boolean {
    return this.#logIds.has(epoch);
  }

  settled(name: string): Promise<void> | void {
    const unsettled = this.#unsettled.get(name);
    if (unsettled === undefined || this.#status.fault === LOG_HEALTHY) return unsettled;
    throw logRefusal(this.#status.fault);
  }

  /** What was asked with a command is committed. */
  done({ id, logId }: Extract<LogMessage, { kind: 'done' }>): void {
    this.#asked.get(id)?.(logId);
    this.#asked.delete(id);
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
}
