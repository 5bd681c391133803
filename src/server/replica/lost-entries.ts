/**
 * Events that a replicated log should have and has not, because its servers lost them or somebody deleted messages. Who asks
 * for them is told to come again; when they have been missing for a while the floor moves past them, by an entry like
 * any other, so that all brokers say of them that they are gone (I2, I9). A loss of the newest is `LogSync`'s.
 */

import type { Logger } from '../../log.js';
import { LogCounter, type LogStatus } from '../../ring/log-status.js';
import { LogError } from '../../storage/event-log.js';
import type { ReplicatedLog, StoredEntry } from '../../storage/replicated-log.js';
import { CountedChain } from './counted-chain.js';
import { findEvent, findFirst, startOfEntry } from './entry-search.js';
import type { ReplicaStream } from './replica-stream.js';
import type { Replication } from './replication.js';
import { StreamGone } from './waiting-publish.js';

export interface LostEntriesOptions {
  readonly log: ReplicatedLog;
  readonly replication: Replication;
  readonly status: LogStatus;
  readonly logger: Logger;
  readonly nowMs: () => number;
}

/** An event that could not be had, and since when. */
interface Missed {
  readonly seq: number;
  readonly sinceMs: number;
}

/** Servers that have just come back, or have another leader, may find then what they do not find now. */
const LOST_AFTER_MS = 30_000;
/** Streams of which it is remembered that some event was missed; those of others are missed again. */
const MISSED_MAX = 1000;

export class LostEntries {
  readonly #options: LostEntriesOptions;
  readonly #missed = new Map<ReplicaStream, Missed>();
  #isBusy = false;

  constructor(options: LostEntriesOptions) {
    this.#options = options;
  }

  /** An event was asked for, is not below the floor, and was not found. */
  missed(stream: ReplicaStream, seq: number): void {
    if (this.#missed.has(stream) || this.#missed.size >= MISSED_MAX) return;
    this.#missed.set(stream, { seq, sinceMs: this.#options.nowMs() });
  }

  /** Call it each second. */
  sweep(): void {
    if (this.#isBusy) return;
    this.#isBusy = true;
    void this.#look().finally(() => {
      this.#isBusy = false;
    });
  }

  async #look(): Promise<void> {
    const nowMs = this.#options.nowMs();
    for (const [stream, { seq, sinceMs }] of [...this.#missed]) {
      if (nowMs - sinceMs < LOST_AFTER_MS) continue;
      try {
        if (!stream.isGone && !(await this.#isThere(stream, seq))) await this.#passOver(stream, seq);
        this.#missed.delete(stream);
      } catch (error) {
        // As long as the log fails nobody can say what it has.
        if (!(error instanceof LogError || error instanceof StreamGone)) throw error;
      }
    }
  }

  async #isThere(stream: ReplicaStream, seq: number): Promise<boolean> {
    return seq < stream.entry.floor || (await findEvent(this.#options.log, stream, seq)) !== null;
  }

  async #passOver(stream: ReplicaStream, seq: number): Promise<void> {
    const { replication, status, logger } = this.#options;
    const next = await this.#nextAfter(stream, seq);
    if (next === null) {
      await replication.recovered(new LogError('io', 'the newest entry of a stream is not in the log'));
      return;
    }
    const { afterSeq, bytes, atMs } = startOfEntry(next);
    const floor = { floor: afterSeq + 1, floorAt: next.at, floorBytes: bytes, floorAtMs: atMs };
    await replication.writerOf(stream).change((entry) => {
      if (floor.floor <= entry.floor || floor.floor > entry.head + 1) return null;
      return { ...entry, ...floor };
    });
    status.add(LogCounter.lostEvents, floor.floor - seq);
    logger.error({ stream: stream.name, first: seq, last: afterSeq }, 'the log has lost events');
  }

  /** The first entry that counts of those after an event that is not there. */
  async #nextAfter(stream: ReplicaStream, seq: number): Promise<StoredEntry | null> {
    const { log } = this.#options;
    const chain = new CountedChain<StoredEntry>(-1);
    let stored = await findFirst(log, stream, ({ afterSeq }) => afterSeq >= seq);
    while (stored !== null && stored.at <= stream.at) {
      const [first] = chain.take(stored, stream.at);
      if (first !== undefined) return first;
      stored = await log.next(stream.name, stored.at + 1);
    }
    return null;
  }
}
