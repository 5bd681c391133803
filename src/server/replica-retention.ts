/**
 * What time does to the streams of a replicated log: retention, and time to live. Whoever wrote last to a stream sees to
 * it; where that broker is gone another one does, a little later. Each writes what it found to be due like any other
 * entry, so that two who do it at once do it once, and all have the same floor (I9).
 */

import { mustGo } from '../core/retention.js';
import type { Logger } from '../log.js';
import { readPositions } from '../ring/lifecycle.js';
import type { Rings } from '../ring/rings.js';
import { LogError } from '../storage/event-log.js';
import type { LogEntry } from '../storage/log-entry.js';
import type { ReplicatedLog } from '../storage/replicated-log.js';
import { findFirst, findLastBefore, startOfEntry } from './entry-search.js';
import type { Replica } from './replica.js';
import type { ReplicaHeld } from './replica-held.js';
import type { ReplicaStream } from './replica-stream.js';
import type { ReplicaSubscribers } from './replica-subscribers.js';
import type { Change } from './replica-writer.js';
import type { Replication } from './replication.js';
import { StreamGone } from './waiting-publish.js';
import type { WriteNames } from './write-names.js';

export interface RetentionOptions {
  readonly log: ReplicatedLog;
  readonly replica: Replica;
  readonly replication: Replication;
  readonly subscribers: ReplicaSubscribers;
  readonly held: ReplicaHeld;
  readonly names: WriteNames;
  readonly rings: Rings;
  readonly logger: Logger;
  readonly nowMs: () => number;
}

/** Sweeps for which the last writer of a stream is left to see to it. */
const OTHERS_SWEEPS = 5;

type Due = 'retention' | 'touch' | 'expire';
type Floor = Pick<LogEntry, 'floor' | 'floorAt' | 'floorBytes' | 'floorAtMs'>;

export class ReplicaRetention {
  readonly #options: RetentionOptions;
  readonly #busy = new Set<ReplicaStream>();

  constructor(options: RetentionOptions) {
    this.#options = options;
  }

  /**
   * A stream has more events than before: what they have to give way to goes soon. Where named subscribers hold them, it
   * would move by an event at a time; that is left to the next sweep.
   */
  grown(stream: ReplicaStream): void {
    const { names, nowMs: now } = this.#options;
    const nowMs = now();
    if (stream.entry.config.overflow === 'reject' || !names.isOwn(stream.entry)) return;
    if (!isOverdue(stream.entry, nowMs, Number.POSITIVE_INFINITY)) return;
    this.#begin(stream, 'retention', nowMs);
  }

  /** Call it each second. */
  sweep(): void {
    const { replica, held, names, nowMs: now } = this.#options;
    const nowMs = now();
    for (const stream of replica.streams()) {
      const due = isOverdue(stream.entry, nowMs, held.seq(stream))
        ? 'retention'
        : this.#ttlDue(stream, nowMs);
      if (due === null) {
        stream.dueSweeps = 0;
        continue;
      }
      const isOwn = names.isOwn(stream.entry) || due === 'touch';
      if (isOwn || ++stream.dueSweeps > OTHERS_SWEEPS) this.#begin(stream, due, nowMs);
    }
  }

  #begin(stream: ReplicaStream, due: Due, nowMs: number): void {
    if (this.#busy.has(stream)) return;
    this.#busy.add(stream);
    void this.#act(stream, due, nowMs)
      .catch((error: unknown) => this.#failed(error))
      .finally(() => {
        this.#busy.delete(stream);
        // It may have grown meanwhile.
        if (!stream.isGone) this.grown(stream);
      });
  }

  async #act(stream: ReplicaStream, due: Due, nowMs: number): Promise<void> {
    if (due === 'retention') return this.#trim(stream, nowMs);
    const { ttlMs } = stream.entry.config;
    await this.#change(stream, (entry) => {
      if (due === 'touch') return entry;
      return entry.atMs + ttlMs <= nowMs ? { ...entry, state: 'removed' } : null;
    });
  }

  /** Somebody who reads keeps a stream alive, on whichever broker: that one says so in time. */
  #ttlDue(stream: ReplicaStream, nowMs: number): 'touch' | 'expire' | null {
    const { atMs, config } = stream.entry;
    if (config.ttlMs === 0 || nowMs - atMs < config.ttlMs / 2) return null;
    const positions = readPositions(this.#options.rings, stream.ref);
    if (positions !== null && positions.subscribers > 0) return 'touch';
    if (positions !== null && positions.lastActivityMs > atMs + config.ttlMs / 2) return 'touch';
    return nowMs - atMs >= config.ttlMs ? 'expire' : null;
  }

  async #trim(stream: ReplicaStream, nowMs: number): Promise<void> {
    const { log, replica, subscribers, held } = this.#options;
    const found = await this.#findFloor(stream, nowMs);
    if (found === null) return;
    if (stream.entry.claimsAfter !== null) (await replica.bookOf(stream)).forget(nowMs);
    await this.#change(stream, (entry) => {
      if (found.floor <= entry.floor || found.floor > entry.head + 1) return null;
      // Who joined and is not known here may hold what would go: the next sweep knows.
      if (!subscribers.knowsUpTo(entry.joinedAt) || found.floor > Math.max(held.seq(stream), found.byAge))
        return null;
      const claimsAfter = stream.book === null ? entry.claimsAfter : stream.book.oldestAfter();
      return { ...entry, ...found.at, claimsAfter };
    });
    const { floorAt, claimsAfter } = stream.entry;
    await log.dropBelow(stream.name, Math.min(floorAt, claimsAfter === null ? floorAt : claimsAfter + 1));
  }

  /** Null: it stays where it is, or is not there any more. `byAge`: what goes for its age, whoever holds it. */
  async #findFloor(
    stream: ReplicaStream,
    nowMs: number,
  ): Promise<{ floor: number; byAge: number; at: Floor } | null> {
    const { log, held } = this.#options;
    const { entry, at } = stream;
    const { retention } = entry.config;
    let bySize = entry.floor + mustGo(entry.head - entry.floor + 1, retention.events);
    let byAge = entry.floor;
    if (mustGo(entry.bytes - entry.floorBytes, retention.bytes) > 0) {
      const goTo = entry.bytes - retention.bytes;
      const stays = await findLastBefore(log, stream, ({ bytes }) => bytes > goTo);
      if (stays !== null) bySize = Math.max(bySize, startOfEntry(stays).afterSeq + 1);
    }
    if (mustGo(nowMs - entry.floorAtMs, retention.ageMs) > 0) {
      const stays = await findFirst(log, stream, ({ atMs }) => atMs > nowMs - retention.ageMs);
      byAge = stays === null ? entry.head + 1 : startOfEntry(stays).afterSeq + 1;
    }
    const floor = Math.max(entry.floor, byAge, Math.min(bySize, held.seq(stream)));
    if (floor > entry.head) {
      return { floor, byAge, at: { floor, floorAt: at, floorBytes: entry.bytes, floorAtMs: nowMs } };
    }
    const first = await findLastBefore(log, stream, ({ afterSeq }) => afterSeq >= floor);
    if (first === null) return null;
    const { bytes, atMs } = startOfEntry(first);
    return { floor, byAge, at: { floor, floorAt: first.at, floorBytes: bytes, floorAtMs: atMs } };
  }

  #change(stream: ReplicaStream, change: Change): Promise<void> {
    return this.#options.replication.writerOf(stream).change(change);
  }

  #failed(error: unknown): void {
    if (error instanceof StreamGone) return;
    if (!(error instanceof LogError)) throw error;
    this.#options.logger.warn({ reason: error.message }, 'retention has to wait for the log');
  }
}

/** Whether a stream keeps more than twice what it has to, of what nobody holds. */
function isOverdue(entry: LogEntry, nowMs: number, heldSeq: number): boolean {
  const { events, bytes, ageMs } = entry.config.retention;
  if (entry.floor > entry.head) return false;
  const isTooMuch =
    mustGo(entry.head - entry.floor + 1, events) > 0 || mustGo(entry.bytes - entry.floorBytes, bytes) > 0;
  return (isTooMuch && entry.floor < heldSeq) || mustGo(nowMs - entry.floorAtMs, ageMs) > 0;
}
