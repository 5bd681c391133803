/**
 * What time does to the streams of a replicated log: retention, and time to live. Whoever wrote last to a stream sees to
 * it; where that broker is gone another one does, a little later. What is due is written as an entry like any other, so
 * that it happens once, also where two brokers write it at a time, and all have the same floor (I9).
 */

import { mustGo } from '../../core/retention.js';
import { RequestError } from '../../errors.js';
import type { Logger } from '../../log.js';
import { readPositions } from '../../ring/lifecycle.js';
import { LOG_FULL, LogCounter, type LogStatus } from '../../ring/log-status.js';
import type { Rings } from '../../ring/rings.js';
import { LogError } from '../../storage/event-log.js';
import type { LogEntry } from '../../storage/jetstream/log-entry.js';
import type { ReplicatedLog } from '../../storage/replicated-log.js';
import { firstKept } from './append-with-room.js';
import { findFirst, findLastBefore, startOfEntry } from './entry-search.js';
import type { Replica } from './replica.js';
import type { ReplicaHeld } from './replica-held.js';
import type { ReplicaStream } from './replica-stream.js';
import type { ReplicaSubscribers } from './replica-subscribers.js';
import type { Change } from './replica-writer.js';
import type { Replication } from './replication.js';
import type { StreamUse } from './stream-use.js';
import { dropRemoved, Tombstones } from './tombstones.js';
import { StreamGone } from './waiting-publish.js';
import type { WriteNames } from './write-names.js';

export interface RetentionOptions {
  readonly log: ReplicatedLog;
  readonly replica: Replica;
  readonly replication: Replication;
  readonly subscribers: ReplicaSubscribers;
  readonly held: ReplicaHeld;
  readonly use: StreamUse;
  readonly names: WriteNames;
  readonly rings: Rings;
  readonly status: LogStatus;
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
  readonly #tombstones = new Tombstones();
  /** Sweeps since the log was full: while it is, who reads a stream cannot say so. */
  #sweepsWithRoom = OTHERS_SWEEPS;

  constructor(options: RetentionOptions) {
    this.#options = options;
  }

  /**
   * A stream has more events than before: what has to go for them goes soon. Where named subscribers hold events, the
   * floor would move by one event at a time; that is left to the next sweep.
   */
  grown(stream: ReplicaStream): void {
    const { names, nowMs: now } = this.#options;
    const nowMs = now();
    if (stream.entry.config.overflow === 'reject' || !names.isOwn(stream.entry)) return;
    if (!isOverdue(stream.entry, nowMs, Number.POSITIVE_INFINITY)) return;
    this.#begin(stream, 'retention', nowMs);
  }

  /** A stream was removed. Its events go from the log at once; the entry that says so goes when all have heard of it. */
  removed({ name, entry, at }: ReplicaStream): void {
    if (!this.#options.names.isOwn(entry)) return;
    this.#tombstones.add({ stream: name, atMs: entry.atMs });
    this.#drop(name, at);
  }

  /** Call it each second. */
  sweep(): void {
    const { log, replica, held, names, status, nowMs: now } = this.#options;
    const nowMs = now();
    this.#sweepsWithRoom = status.fault === LOG_FULL ? 0 : this.#sweepsWithRoom + 1;
    for (const stream of this.#tombstones.takeOld(nowMs)) {
      dropRemoved(log, replica, { stream, nowMs }).catch((error: unknown) => this.#failed(error));
    }
    let keptBytes = 0;
    for (const stream of replica.streams()) {
      keptBytes += stream.entry.bytes - stream.entry.floorBytes;
      const due = isOverdue(stream.entry, nowMs, held.seq(stream))
        ? 'retention'
        : this.#ttlDue(stream, nowMs);
      if (due === null) {
        stream.dueSweeps = 0;
        continue;
      }
      const isOwn = names.isOwn(stream.entry) || due === 'touch';
      if (due === 'expire' && this.#sweepsWithRoom <= OTHERS_SWEEPS) continue;
      if (isOwn || ++stream.dueSweeps > OTHERS_SWEEPS) this.#begin(stream, due, nowMs);
    }
    status.set(LogCounter.keptBytes, keptBytes);
  }

  #begin(stream: ReplicaStream, due: Due, nowMs: number): void {
    if (this.#busy.has(stream)) return;
    this.#busy.add(stream);
    const { floor } = stream.entry;
    void this.#act(stream, due, nowMs)
      .catch((error: unknown) => this.#failed(error))
      .finally(() => {
        this.#busy.delete(stream);
        // It may have grown meanwhile. What could not be done now is left to the next sweep.
        if (!stream.isGone && stream.entry.floor > floor) this.grown(stream);
      });
  }

  async #act(stream: ReplicaStream, due: Due, nowMs: number): Promise<void> {
    if (due === 'retention') return this.#trim(stream, nowMs);
    const { use } = this.#options;
    if (due === 'touch') return use.touch(stream, nowMs);
    await use.look(stream);
    const { ttlMs } = stream.entry.config;
    await this.#change(stream, (entry) =>
      use.lastMs(stream) + ttlMs <= nowMs ? { ...entry, state: 'removed' } : null,
    );
  }

  /** Somebody who reads keeps a stream alive, on whichever broker: that one says so in time. */
  #ttlDue(stream: ReplicaStream, nowMs: number): 'touch' | 'expire' | null {
    const { ttlMs } = stream.entry.config;
    const usedMs = this.#options.use.lastMs(stream);
    if (ttlMs === 0 || nowMs - usedMs < ttlMs / 2) return null;
    const positions = readPositions(this.#options.rings, stream.ref);
    if (positions !== null && positions.subscribers > 0) return 'touch';
    if (positions !== null && positions.lastActivityMs > usedMs + ttlMs / 2) return 'touch';
    return nowMs - usedMs >= ttlMs ? 'expire' : null;
  }

  async #trim(stream: ReplicaStream, nowMs: number): Promise<void> {
    const { log, replica, subscribers, held } = this.#options;
    const found = await this.#findFloor(stream, nowMs);
    if (found === null) return;
    if (stream.entry.claimsAfter !== null) (await replica.bookOf(stream)).forget(nowMs);
    await this.#change(stream, (entry) => {
      if (found.floor <= entry.floor || found.floor > entry.head + 1) return null;
      // Who joined and is not known here may hold what would go, and so may who has moved on in time and seems to have come
      // too late for the floor: the next sweep knows.
      const heardAt = entry.config.overflow === 'reject' ? Math.max(entry.joinedAt, stream.floorMovedAt) : 0;
      if (!subscribers.knowsUpTo(heardAt) || found.floor > Math.max(held.seq(stream), found.byAge))
        return null;
      const claimsAfter = stream.book === null ? entry.claimsAfter : stream.book.oldestAfter();
      return { ...entry, ...found.at, claimsAfter };
    });
    await log.dropBelow(stream.name, firstKept(stream.entry));
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

  #drop(name: string, below: number): void {
    this.#options.log.dropBelow(name, below).catch((error: unknown) => this.#failed(error));
  }

  /** What is due is due at the next sweep as well. */
  #failed(error: unknown): void {
    if (error instanceof StreamGone) return;
    if (!(error instanceof LogError || error instanceof RequestError)) throw error;
    this.#options.logger.warn({ reason: error.message }, 'retention has to wait for the log');
  }
}

/** Whether some of a stream has to go: for its age, or as more than twice what is to be kept, where nobody holds it. */
function isOverdue(entry: LogEntry, nowMs: number, heldSeq: number): boolean {
  const { events, bytes, ageMs } = entry.config.retention;
  if (entry.floor > entry.head) return false;
  const isTooMuch =
    mustGo(entry.head - entry.floor + 1, events) > 0 || mustGo(entry.bytes - entry.floorBytes, bytes) > 0;
  return (isTooMuch && entry.floor < heldSeq) || mustGo(nowMs - entry.floorAtMs, ageMs) > 0;
}
