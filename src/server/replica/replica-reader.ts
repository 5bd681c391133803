/**
 * Reads runs of frames from a replicated log for readers who are below the ring.
 */

import { concatBytes } from '../../core/concat-bytes.js';
import type { EventParts } from '../../core/event-parts.js';
import { IdLine } from '../../core/sse-frame.js';
import { idLinesBytes } from '../../ring/append.js';
import type { LogRun } from '../../storage/event-log.js';
import { decodeParts } from '../../storage/jetstream/log-entry.js';
import type { ReplicatedLog, StoredEntry } from '../../storage/replicated-log.js';
import { type ReplayStats, SharedReads } from '../replay/shared-reads.js';
import { followedBy, followsOther, isOther, type Known } from './contradiction.js';
import { findEvent, hasEvent } from './entry-search.js';
import type { ReplicaStream } from './replica-stream.js';

export interface ReplicaReaderOptions {
  readonly log: ReplicatedLog;
  /** Reads under way at a time. */
  readonly readsMax: number;
}

/** Where a run goes on: at the first entry from `from` on. It counts if it follows the one before. */
interface Place {
  readonly from: number;
  readonly before: Known;
}

/** Entries in one run: small ones would otherwise be read for long before the first is written. */
const ENTRIES_MAX = 64;
/** Places that are remembered, where readers may go on. */
const PLACES_MAX = 10_000;

export class ReplicaReader {
  readonly #options: ReplicaReaderOptions;
  readonly #reads: SharedReads;
  /** Where an event is to be looked for, by its id; those that were used last come last. */
  readonly #places = new Map<string, Place>();

  constructor(options: ReplicaReaderOptions) {
    this.#options = options;
    this.#reads = new SharedReads(options.readsMax);
  }

  get stats(): ReplayStats {
    return this.#reads.stats;
  }

  /**
   * The frames after a seq, at most `bytesMax` but at least one. Null: the event after it cannot be read any more.
   * @throws {LogError} @throws {LogCorruption}
   */
  read(stream: ReplicaStream, afterSeq: number, bytesMax: number): Promise<LogRun | null> {
    const key = `${stream.epoch}.${afterSeq}.${bytesMax}`;
    return this.#reads.take(key, () => this.#read(stream, afterSeq + 1, bytesMax));
  }

  async #read(stream: ReplicaStream, seq: number, bytesMax: number): Promise<LogRun | null> {
    const entries = await this.#collect(stream, seq, bytesMax);
    return entries === null ? null : toRun(stream.epoch, seq, entries, bytesMax);
  }

  /**
   * The entries from that of `seq` on, of as many bytes as are wanted. Where machines of the log may differ, the last one is
   * given only if the next one follows that very one (contradiction.ts).
   */
  async #collect(stream: ReplicaStream, seq: number, bytesMax: number): Promise<StoredEntry[] | null> {
    const { log } = this.#options;
    const first = await this.#find(stream, seq);
    if (first === null) return null;
    const entries = [first];
    let bytes = first.body.length;
    let last = first;
    let lookedAt = first.at;
    for (let read = 0; read < ENTRIES_MAX && bytes < bytesMax && last.at < stream.at; read++) {
      const stored = await this.#next(stream, { from: lookedAt + 1, before: last });
      if (stored === null) break;
      lookedAt = stored.at;
      // It does not count.
      if (stored.entry.previous !== last.at) continue;
      last = stored;
      if (stored.entry.count === 0) continue;
      entries.push(stored);
      bytes += stored.body.length;
    }
    const place: Place = { from: lookedAt + 1, before: knownOf(last) };
    const isSure = log.isExact || last.at >= stream.at || (await this.#isFollowed(stream, place));
    if (!isSure && entries.at(-1) === last) entries.pop();
    const newest = entries.at(-1);
    if (newest === undefined) return null;
    if (isSure) this.#remember(`${stream.epoch}.${newest.entry.head + 1}`, place);
    return entries;
  }

  /** Whether an entry that was taken up follows the one before a place. @throws {LogError} it follows another one there */
  async #isFollowed(stream: ReplicaStream, { from, before }: Place): Promise<boolean> {
    let next = await this.#next(stream, { from, before });
    while (next !== null && next.entry.previous !== before.at) {
      next = await this.#next(stream, { from: next.at + 1, before });
    }
    return next !== null;
  }

  /** The next entry from a place on, of those that were looked at. @throws {LogError} another one is there than is known */
  async #next(stream: ReplicaStream, { from, before }: Place): Promise<StoredEntry | null> {
    const stored = await this.#options.log.next(stream.name, from);
    if (stored === null || stored.at > stream.at) return null;
    if (followsOther(stored, before) || isOther(stored, stream)) throw stream.contradicted();
    return stored;
  }

  async #find(stream: ReplicaStream, seq: number): Promise<StoredEntry | null> {
    const { log } = this.#options;
    const place = this.#places.get(`${stream.epoch}.${seq}`);
    const guessed = place === undefined ? null : await this.#next(stream, place);
    if (guessed?.entry.previous === place?.before.at && guessed !== null && hasEvent(guessed, stream, seq))
      return guessed;
    const found = await findEvent(log, stream, seq);
    if (found === null) return null;
    this.#remember(`${stream.epoch}.${seq}`, { from: found.at, before: followedBy(found) });
    return found;
  }

  #remember(key: string, place: Place): void {
    this.#places.delete(key);
    this.#places.set(key, place);
    for (const oldest of this.#places.keys()) {
      if (this.#places.size <= PLACES_MAX) break;
      this.#places.delete(oldest);
    }
  }
}

/** No more of it is kept. */
function knownOf({ at, entry: { writer } }: StoredEntry): Known {
  return { at, entry: { writer } };
}

/** The events of some entries from `seq` on, framed with their ids. */
function toRun(epoch: string, seq: number, entries: readonly StoredEntry[], bytesMax: number): LogRun {
  const frames: Uint8Array[] = [];
  let lastSeq = seq - 1;
  let size = 0;
  for (const { entry, body, at, stream } of entries) {
    const parts = decodeParts(body, entry.count, `entry ${at} of stream ${stream}`);
    const skipped = lastSeq - (entry.head - entry.count);
    const taken = countWithin(parts, skipped, bytesMax - size, size === 0);
    if (taken === 0) break;
    const framed = frame(epoch, lastSeq + 1, parts, { skipped, taken });
    frames.push(framed);
    size += framed.length;
    lastSeq += taken;
  }
  return {
    firstSeq: seq,
    lastSeq,
    frames: frames.length === 1 ? (frames[0] as Uint8Array) : concatBytes(frames),
  };
}

/** How many events after some fit into a size, without their ids; one does in any case where it is the first. */
function countWithin({ ends }: EventParts, skipped: number, bytesMax: number, isFirst: boolean): number {
  const start = startOf(ends, skipped);
  let taken = isFirst ? 1 : 0;
  while (skipped + taken < ends.length && (ends[skipped + taken] as number) - start <= bytesMax) taken++;
  return taken;
}

function frame(
  epoch: string,
  firstSeq: number,
  { bytes, ends }: EventParts,
  { skipped, taken }: { skipped: number; taken: number },
): Uint8Array {
  let partStart = startOf(ends, skipped);
  const partsBytes = (ends[skipped + taken - 1] as number) - partStart;
  const framed = new Uint8Array(partsBytes + idLinesBytes(epoch.length, firstSeq, taken));
  const idLine = new IdLine();
  idLine.start(epoch, firstSeq);
  let at = 0;
  for (let i = skipped; i < skipped + taken; i++) {
    const partEnd = ends[i] as number;
    framed.set(idLine.bytes.subarray(0, idLine.length), at);
    at += idLine.length;
    framed.set(bytes.subarray(partStart, partEnd), at);
    at += partEnd - partStart;
    partStart = partEnd;
    idLine.next();
  }
  return framed;
}

function startOf(ends: Uint32Array, index: number): number {
  return index === 0 ? 0 : (ends[index - 1] as number);
}
