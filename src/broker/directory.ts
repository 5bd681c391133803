/**
 * The directory of streams: which name lives in which slot, with which configuration; and what time does to
 * them, age and time to live. Cold path. Single owner: the coordinator.
 */

import { assert } from '../assert.js';
import { EPOCH_LENGTH, makeEpoch } from '../core/epoch.js';
import { type ProducerRecords, RECORD_KINDS } from '../core/producer-record.js';
import { parseStreamConfig, type StreamConfig, sameConfig } from '../core/retention.js';
import { OWN_STREAMS_PREFIX } from '../core/stream-name.js';
import { RequestError } from '../errors.js';
import {
  closeStream,
  openStream,
  readPositions,
  removeStream,
  type StreamPositions,
  subscribersOf,
  trimBelow,
  trimToRetention,
} from '../ring/lifecycle.js';
import { forgetProducers, hasTables, restoreProducers } from '../ring/producer-memory.js';
import { hasRoomForStream } from '../ring/ring-growth.js';
import type { Rings } from '../ring/rings.js';
import type { Wakes } from '../ring/wake-queue.js';
import { AgeMarks } from './age-marks.js';
import type { StreamRef } from './edge-stream.js';
import type { Journal } from './journal.js';
import { keptBytesMax, type RingLimits, ringBytesMax, ringRetention } from './ring-size.js';
import { SortedNames } from './sorted-names.js';

export interface DirectoryOptions extends RingLimits {
  readonly rings: Rings;
  readonly wakes: Wakes;
  /** What a stream gets that is created without a configuration of its own. */
  readonly defaults: StreamConfig;
  readonly autoCreate: boolean;
  readonly journal: Journal;
  /** Called with the name of a stream that nobody here has used for its time to live, each time it is looked at. */
  readonly expire?: (name: string) => void;
  /** Called with a stream that is there from now on. */
  readonly made?: (ref: StreamRef) => void;
  /** Called with the epoch of a stream that is no more. */
  readonly removed: (epoch: string) => void;
  readonly now: () => number;
  readonly randomBytes: (count: number) => Uint8Array;
}

/** Where a stream of the durable log stands. */
export interface LoggedPositions {
  readonly floor: number;
  readonly head: number;
  readonly closed: boolean;
  /** What is remembered of who published to it. */
  readonly producers?: ProducerRecords;
}

interface Entry {
  readonly ref: StreamRef;
  /** Null: the stream keeps its events whatever their age. */
  readonly marks: AgeMarks | null;
  /** When it was last seen in use; perhaps it was since. */
  usedAtMs: number;
}

/** A stream with its positions, as lists and states show it. */
export interface StreamState {
  readonly ref: StreamRef;
  readonly positions: StreamPositions;
}

/** Streams whose producers are looked at in one sweep: all of a hundred thousand in some seconds. */
const LOOKED_AT_MAX = 5000;
/** Producers, and keys, that a stream forgets in one sweep. */
const FORGOTTEN_MAX = 1000;

export class Directory {
  readonly #options: DirectoryOptions;
  readonly #entries = new Map<string, Entry>();
  /** Streams with an age or a time to live; the others cost a sweep nothing, however many there are. */
  readonly #timed = new Set<Entry>();
  /** Where the sweep of producers has come to. */
  #round: Iterator<Entry> = this.#entries.values();
  /** Slots of removed streams. */
  readonly #freeSlots: number[] = [];
  #usedSlots = 0;
  /** Events that removed streams had evicted, so that the total never goes back. */
  #evictedByRemoved = 0;
  readonly #names = new SortedNames(() => this.#entries.keys());

  constructor(options: DirectoryOptions) {
    this.#options = options;
  }

  get size(): number {
    return this.#entries.size;
  }

  /** Events evicted since the start, over all streams. */
  get evictedEvents(): number {
    let evicted = this.#evictedByRemoved;
    for (const { positions } of this.states()) evicted += positions.evictedEvents;
    return evicted;
  }

  find(name: string): StreamRef | null {
    return this.#entries.get(name)?.ref ?? null;
  }

  /** Finds a stream, or creates it where that is wanted and the server does so (contract 2.4). */
  resolve(name: string, create: boolean): StreamRef | null {
    const found = this.find(name);
    if (found !== null || !create || !this.#options.autoCreate) return found;
    return this.#create(name, this.#options.defaults);
  }

  /**
   * Creates a stream with a configuration (contract 2.1).
   * @param json the request's body, parsed; undefined when there was none.
   * @throws {RequestError} `invalid_config`, `config_conflict`, `too_many_streams`
   */
  put(name: string, json: unknown): { ref: StreamRef; created: boolean } {
    const config = this.readConfig(json);
    const found = this.find(name);
    if (found === null) return { ref: this.#create(name, config), created: true };
    if (!sameConfig(found.config, config)) {
      throw new RequestError('config_conflict', undefined, { config: found.config });
    }
    return { ref: found, created: false };
  }

  /** What a stream would be created with. @throws {RequestError} `invalid_config` */
  readConfig(json: unknown): StreamConfig {
    return parseStreamConfig(json, this.#options.defaults, keptBytesMax(this.#options));
  }

  /** What a stream is created with that nobody configures. */
  get defaults(): StreamConfig {
    return this.#options.defaults;
  }

  /** Ends a stream (contract 2.3). A closed one stays closed. */
  close(name: string): StreamRef | null {
    const ref = this.find(name);
    if (ref === null) return null;
    closeStream(this.#options.rings, ref, this.#options.now());
    this.#options.wakes.announce(ref.slot, -1);
    this.#options.journal.closed(ref);
    return ref;
  }

  /** Removes a stream; its readers get a terminal event (contract 2.3). */
  remove(name: string): boolean {
    const entry = this.#entries.get(name);
    if (entry === undefined) return false;
    const { ref } = entry;
    this.#evictedByRemoved += (this.state(name) as StreamState).positions.evictedEvents;
    assert(removeStream(this.#options.rings, ref), 'S4: the directory holds current handles only');
    this.#entries.delete(name);
    this.#timed.delete(entry);
    this.#names.removed(name);
    this.#freeSlots.push(ref.slot);
    this.#options.wakes.announce(ref.slot, -1);
    this.#options.journal.removed(ref);
    this.#options.removed(ref.epoch);
    return true;
  }

  /** Streams of clients by their names, after `after` (contract 2.2), but for those whose creation a crash may undo. */
  list(options: { prefix: string; after: string; limit: number }): StreamState[] {
    const states: StreamState[] = [];
    for (const ref of this.refs(options.prefix, options.after)) {
      if (states.length === options.limit) break;
      if (this.#options.journal.hasCreated(ref)) states.push(this.state(ref.name) as StreamState);
    }
    return states;
  }

  /** Streams of clients by their names, after `after`, with those whose creation is not durable yet. */
  *refs(prefix: string, after = ''): Generator<StreamRef> {
    for (const name of this.#names.from(prefix, after)) {
      if (!name.startsWith(OWN_STREAMS_PREFIX)) yield this.find(name) as StreamRef;
    }
  }

  state(name: string): StreamState | null {
    const ref = this.find(name);
    if (ref === null) return null;
    const positions = readPositions(this.#options.rings, ref);
    assert(positions !== null, 'S4: the directory holds current handles only');
    return { ref, positions };
  }

  /** The broker's own streams, which no list has. */
  *ownStates(): Generator<StreamState> {
    for (const name of this.#entries.keys()) {
      if (name.startsWith(OWN_STREAMS_PREFIX)) yield this.state(name) as StreamState;
    }
  }

  *states(): Generator<StreamState> {
    for (const name of this.#entries.keys()) yield this.state(name) as StreamState;
  }

  /** Applies age and time to live to all streams. Call it a few times a second. */
  sweep(): void {
    const nowMs = this.#options.now();
    for (const entry of this.#timed) {
      if (entry.marks !== null) this.#sweepAge(entry, entry.marks, nowMs);
      if (entry.ref.config.ttlMs > 0) this.#sweepTtl(entry, nowMs);
    }
    this.#sweepProducers(nowMs);
  }

  /**
   * Takes up a stream that the durable log has. It costs a slot and no ring until it is touched.
   * @returns its handle.
   * @throws {Error} when there is no memory for what is remembered of its publishers, without whom nothing may be
   *   appended: a repeat would be appended twice.
   */
  restore(stream: LoggedPositions & { name: string; epoch: string; config: StreamConfig }): StreamRef {
    const { name, epoch, config } = stream;
    const ref = this.#open({ name, epoch, config, logged: stream });
    if (stream.producers !== undefined && !restoreProducers(this.#options.rings, ref, stream.producers)) {
      throw new Error(`no memory for the producers of stream ${name}: give it more, by memory`);
    }
    return ref;
  }

  /**
   * Forgets those whose time is over on streams that nobody publishes to any more, going round all streams while some
   * have producers at all. With a log its thread does it, which has to delete there too.
   */
  #sweepProducers(nowMs: number): void {
    const { rings } = this.#options;
    if (rings.durable || rings.arena.tableBytes === 0) return;
    for (let left = LOOKED_AT_MAX; left > 0; left--) {
      const { done, value } = this.#round.next();
      if (done === true) {
        this.#round = this.#entries.values();
        return;
      }
      const { ref } = value as Entry;
      if (!hasTables(rings, ref.slot)) continue;
      for (const kind of RECORD_KINDS) forgetProducers(rings, ref, kind, { nowMs, countMax: FORGOTTEN_MAX });
    }
  }

  #sweepAge({ ref }: Entry, marks: AgeMarks, nowMs: number): void {
    const { head } = (this.state(ref.name) as StreamState).positions;
    const old = marks.advance(head, nowMs);
    if (old > 0) trimBelow(this.#options.rings, ref, old + 1);
    trimToRetention(this.#options.rings, ref);
  }

  #sweepTtl(entry: Entry, nowMs: number): void {
    const { name, config } = entry.ref;
    if (subscribersOf(this.#options.rings, entry.ref) > 0) entry.usedAtMs = nowMs;
    // Of thousands of streams hardly one has been silent for so long; the others cost no lock.
    if (nowMs - entry.usedAtMs < config.ttlMs) return;
    const { positions } = this.state(name) as StreamState;
    const { head, committed, lastActivityMs } = positions;
    // What waits for its commit is on its way: its publisher was not answered.
    entry.usedAtMs = head > committed ? nowMs : Math.max(entry.usedAtMs, lastActivityMs);
    if (nowMs - entry.usedAtMs < config.ttlMs) return;
    if (this.#options.expire === undefined) this.remove(name);
    else this.#options.expire(name);
  }

  #create(name: string, config: StreamConfig): StreamRef {
    // A stream that could not be given its first event is not made.
    if (!hasRoomForStream(this.#options.rings)) throw new RequestError('insufficient_memory');
    const epoch = makeEpoch(this.#options.randomBytes(EPOCH_LENGTH));
    const ref = this.#open({ name, epoch, config });
    this.#options.journal.created(ref);
    return ref;
  }

  #open(stream: { name: string; epoch: string; config: StreamConfig; logged?: LoggedPositions }): StreamRef {
    const { name, config } = stream;
    const { rings, now } = this.#options;
    const slot = this.#freeSlots.pop() ?? this.#usedSlots;
    if (slot >= rings.slotCount) {
      throw new RequestError('too_many_streams', undefined, { limit: rings.slotCount });
    }
    if (slot === this.#usedSlots) this.#usedSlots++;
    const nowMs = now();
    const handle = openStream(rings, slot, {
      ...stream,
      retention: ringRetention(config, this.#options),
      dataBytesMax: ringBytesMax(config, this.#options),
      nowMs,
    });
    const ref: StreamRef = { ...handle, name, config };
    const { ageMs } = config.retention;
    const entry: Entry = { ref, marks: ageMs > 0 ? new AgeMarks(ageMs) : null, usedAtMs: nowMs };
    this.#entries.set(name, entry);
    if (entry.marks !== null || config.ttlMs > 0) this.#timed.add(entry);
    this.#names.added(name);
    this.#options.made?.(ref);
    return ref;
  }
}
