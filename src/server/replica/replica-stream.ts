/**
 * One stream of a replicated log as this broker has it: the newest entry that it took up, and what follows from it.
 */

import type { StreamRef } from '../../broker/edge-stream.js';
import type { Cursor } from '../../core/cursor.js';
import type { ProducerBook } from '../../core/producer-book.js';
import { LogError } from '../../storage/event-log.js';
import type { LogEntry } from '../../storage/jetstream/log-entry.js';
import type { StoredEntry } from '../../storage/replicated-log.js';
import { CONTRADICTED } from './contradiction.js';

/** Told of what the stream's entries say, in their order. */
export interface ReplicaObserver {
  /** The entry was taken up; all before it were too. */
  advanced(entry: LogEntry): void;
  /** An entry does not count: another one was first. */
  lost(entry: LogEntry): void;
  /** Entries were passed over: what they said is in the log, or nowhere any more. */
  jumped(): void;
  /** The stream is no more. */
  gone(): void;
}

export class ReplicaStream {
  readonly ref: StreamRef;
  /** Newest entry that counts, and where it lies. */
  entry: LogEntry;
  at: number;
  /** Where the newest of all its entries lies, those among them that do not count. All up to there were looked at. */
  tailAt: number;
  /** Where the entry lies that moved the floor to where it is, or a later one. */
  floorMovedAt: number;
  /** Who published; null until somebody asks, when it is read from the log. */
  book: ProducerBook | null = null;
  isGone = false;
  /** An entry names one that was passed over: nothing is taken up before it was looked for what the log has lost. */
  isSuspect = false;
  /** It was once, and nothing was found to be lost: should it be again, the log has let go of what would show it. */
  wasSuspect = false;
  /** How often something was due that another broker should have done. */
  dueSweeps = 0;
  observer: ReplicaObserver | null = null;

  readonly #toRenew: () => void;
  #tailWaiter: { readonly at: number; readonly reached: (isReached: boolean) => void } | null = null;

  /** @param toRenew has it begin anew. */
  constructor(ref: StreamRef, { entry, at }: Pick<StoredEntry, 'entry' | 'at'>, toRenew: () => void) {
    this.ref = ref;
    this.entry = entry;
    this.at = at;
    this.tailAt = at;
    this.#toRenew = toRenew;
    this.floorMovedAt = at;
  }

  /** Has it begin anew. @returns what to throw where the entry that was asked for cannot be told. */
  contradicted(): LogError {
    if (!this.isGone) this.#toRenew();
    return new LogError('io', CONTRADICTED);
  }

  hasReached({ epoch, seq }: Cursor): boolean {
    return epoch === this.epoch && seq <= this.entry.head;
  }

  /** Resolves with whether all its entries up to a position have been looked at, or it is gone, within a time. */
  hasTail(at: number, ms: number): Promise<boolean> | boolean {
    if (this.isGone || this.tailAt >= at) return true;
    return new Promise((resolve) => {
      const late = setTimeout(() => reached(false), ms);
      const reached = (isReached: boolean): void => {
        clearTimeout(late);
        this.#tailWaiter = null;
        resolve(isReached);
      };
      this.#tailWaiter = { at, reached };
    });
  }

  /** All its entries up to a position have been looked at. */
  looked(at: number): void {
    this.tailAt = Math.max(this.tailAt, at);
    const waiter = this.#tailWaiter;
    if (waiter !== null && waiter.at <= this.tailAt) waiter.reached(true);
  }

  get name(): string {
    return this.ref.name;
  }

  get epoch(): string {
    return this.ref.epoch;
  }
}
