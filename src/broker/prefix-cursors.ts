/**
 * The cursors of subscriptions by prefix (contract 4.11), and who is to hear of new streams. A cursor is with one edge at a
 * time, which is _holding_ it, or it is kept here until its subscriber comes back or its time is over. Cold path. Single
 * owner: the coordinator.
 */

import { assert } from '../assert.js';
import { allows, type Grant } from '../core/grant.js';
import type { KeptCursor } from '../core/kept-cursor.js';
import { makeToken, TOKEN_BYTES } from '../core/prefix-cursor.js';
import { OWN_STREAMS_PREFIX } from '../core/stream-name.js';
import { RequestError } from '../errors.js';
import type { StreamRef } from './edge-stream.js';

/** A subscription of an edge, on its way or open. */
export interface Holder {
  readonly edge: number;
  /** Number of the subscription at its edge. */
  readonly id: number;
}

/** Somebody subscribes to all streams whose names begin so. */
export interface Follow extends Holder {
  readonly prefix: string;
  /** Who it is; nobody else is given the cursor. */
  readonly owner: string;
  readonly grant: Grant;
  /** Null: a new cursor. */
  readonly token: string | null;
}

export interface Followed {
  readonly token: string;
  /** Null: nothing was sent yet. */
  readonly cursor: KeptCursor | null;
  /** The streams there are now; those that come later are told of. */
  readonly refs: readonly StreamRef[];
}

/** There is no such cursor, or it is of somebody else or another prefix; or more streams begin so than may be followed. */
export type NotFollowed = 'unknown' | 'too_many_streams';

/** What an edge gives back. */
export interface HandBack extends Holder {
  readonly token: string;
  /** Null: nothing was sent that could be resumed from. */
  readonly cursor: KeptCursor | null;
}

export interface PrefixCursorsOptions {
  /** Streams whose names begin so, in order of their names. */
  readonly streams: (prefix: string) => Iterable<StreamRef>;
  readonly cursorsMax: number;
  readonly streamsMax: number;
  readonly keepMs: number;
  readonly tellMade: (edge: number, ref: StreamRef) => void;
  /** Has an edge end a subscription; it hands the cursor back, in any case. */
  readonly release: (holder: Holder) => void;
  readonly now: () => number;
  readonly randomBytes: (count: number) => Uint8Array;
}

interface Entry {
  readonly token: string;
  readonly prefix: string;
  readonly owner: string;
  holder: Holder | null;
  cursor: KeptCursor | null;
  keptAtMs: number;
  /** Those who wait until it is handed back. */
  readonly waiting: (() => void)[];
}

export class PrefixCursors {
  readonly #options: PrefixCursorsOptions;
  /** Those that are kept in the order in which they were handed back. */
  readonly #entries = new Map<string, Entry>();
  /** By prefix: how many subscriptions of each edge. */
  readonly #following = new Map<string, Map<number, number>>();
  #open = 0;
  #dropped = 0;
  #takeovers = 0;

  constructor(options: PrefixCursorsOptions) {
    this.#options = options;
  }

  get size(): number {
    return this.#entries.size;
  }

  /** Cursors of subscriptions that are open, or on their way. */
  get open(): number {
    return this.#open;
  }

  /** Cursors given up because there were too many. */
  get dropped(): number {
    return this.#dropped;
  }

  /** Connections ended because their subscriber came back on another. */
  get takeovers(): number {
    return this.#takeovers;
  }

  /**
   * Gives an edge a cursor, once whoever had it has stopped; the newest who asks has it in the end.
   *
   * @throws {RequestError} `too_many_subscriptions`
   */
  async follow(follow: Follow): Promise<Followed | NotFollowed> {
    if (follow.token === null) return this.#take(this.#create(follow), follow);
    for (;;) {
      const entry = this.#entries.get(follow.token);
      if (entry === undefined || entry.owner !== follow.owner || entry.prefix !== follow.prefix)
        return 'unknown';
      if (entry.holder === null) return this.#take(entry, follow);
      if (entry.waiting.length === 0) {
        this.#takeovers++;
        this.#options.release(entry.holder);
      }
      await new Promise<void>((freed) => entry.waiting.push(freed));
    }
  }

  handBack({ edge, id, token, cursor }: HandBack): void {
    const entry = this.#entries.get(token);
    assert(entry?.holder?.edge === edge && entry.holder.id === id, 'a cursor is handed back by who holds it');
    this.#count(entry.prefix, edge, -1);
    entry.holder = null;
    entry.cursor = cursor;
    entry.keptAtMs = this.#options.now();
    this.#entries.delete(token);
    if (cursor !== null) this.#entries.set(token, entry);
    for (const freed of entry.waiting.splice(0)) freed();
  }

  /** A stream was made: who follows its name is told. */
  made(ref: StreamRef): void {
    if (ref.name.startsWith(OWN_STREAMS_PREFIX)) return;
    const told = new Set<number>();
    for (const [prefix, edges] of this.#following) {
      if (ref.name.startsWith(prefix)) for (const edge of edges.keys()) told.add(edge);
    }
    for (const edge of told) this.#options.tellMade(edge, ref);
  }

  /** Forgets cursors whose subscribers have not come back in time. Call it a few times a second. */
  sweep(): void {
    const untilMs = this.#options.now() - this.#options.keepMs;
    for (const [token, { holder, keptAtMs }] of this.#entries) {
      if (holder !== null) continue;
      if (keptAtMs > untilMs) return;
      this.#entries.delete(token);
    }
  }

  #create({ prefix, owner }: Follow): Entry {
    this.#makeRoom();
    const token = makeToken(this.#options.randomBytes(TOKEN_BYTES));
    return { token, prefix, owner, holder: null, cursor: null, keptAtMs: 0, waiting: [] };
  }

  #makeRoom(): void {
    const { cursorsMax } = this.#options;
    if (this.#entries.size < cursorsMax) return;
    for (const [token, { holder }] of this.#entries) {
      if (holder !== null) continue;
      this.#entries.delete(token);
      this.#dropped++;
      return;
    }
    throw new RequestError('too_many_subscriptions', undefined, { scope: 'prefix', limit: cursorsMax });
  }

  /** Cursor and streams are of one moment, from which on the edge is told of new ones. */
  #take(entry: Entry, { edge, id, grant }: Follow): Followed | NotFollowed {
    const { token, prefix, cursor } = entry;
    const refs = this.#readable(prefix, grant);
    if (refs === null) return 'too_many_streams';
    entry.holder = { edge, id };
    entry.cursor = null;
    this.#entries.set(token, entry);
    this.#count(prefix, edge, 1);
    return { token, cursor, refs };
  }

  #readable(prefix: string, grant: Grant): StreamRef[] | null {
    const { streamsMax } = this.#options;
    const refs: StreamRef[] = [];
    for (const ref of this.#options.streams(prefix)) {
      if (!allows(grant, 'subscribe', ref.name)) continue;
      if (refs.length === streamsMax) return null;
      refs.push(ref);
    }
    return refs;
  }

  #count(prefix: string, edge: number, change: 1 | -1): void {
    this.#open += change;
    let edges = this.#following.get(prefix);
    if (edges === undefined) {
      edges = new Map();
      this.#following.set(prefix, edges);
    }
    const count = (edges.get(edge) ?? 0) + change;
    if (count > 0) edges.set(edge, count);
    else edges.delete(edge);
    if (edges.size === 0) this.#following.delete(prefix);
  }
}
