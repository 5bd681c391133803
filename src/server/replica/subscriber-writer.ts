/**
 * Named subscribers where brokers share the log (contract 4.8, 7): each has entries of its own there, and what it is known
 * to have is what the newest of them says. An answer is judged by that one: what moves is appended after it, and refused
 * where another broker was first; what does not move is looked up first.
 *
 * Single owner: the main thread.
 */

import type { Judged, NamedSubscribers } from '../../broker/named-subscribers.js';
import { holds } from '../../core/acknowledge.js';
import { type Cursor, formatCursor, parseCursor } from '../../core/cursor.js';
import type { Start } from '../../core/resume.js';
import { RequestError } from '../../errors.js';
import { LogError } from '../../storage/event-log.js';
import type { SubscriberEntry } from '../../storage/jetstream/subscriber-entry.js';
import type { ReplicatedLog, StoredSubscriber, SubscriberKey } from '../../storage/replicated-log.js';
import { following } from './newest-entry.js';
import type { Replica } from './replica.js';
import type { ReplicaSubscribers } from './replica-subscribers.js';
import type { Replication } from './replication.js';
import { StreamGone } from './waiting-publish.js';
import type { WriteNames } from './write-names.js';

export interface SubscriberWriterOptions {
  readonly log: ReplicatedLog;
  readonly replica: Replica;
  readonly replication: Replication;
  readonly subscribers: ReplicaSubscribers;
  readonly named: NamedSubscribers;
  readonly names: WriteNames;
  /** Unix time, milliseconds. */
  readonly nowMs: () => number;
}

/** What was judged, and the entry before, which it followed; undefined: nothing was written. */
type Decided<J extends Judged> = J & { readonly before: SubscriberEntry | null | undefined };

/** How often other brokers may be first before the client is told so. */
const TRIES_MAX = 100;

export class SubscriberWriter {
  readonly #options: SubscriberWriterOptions;
  /** By subscriber: the last of what is to be done for it, one after the other. Bounded by the connections. */
  readonly #turns = new Map<string, Promise<unknown>>();

  constructor(options: SubscriberWriterOptions) {
    this.#options = options;
  }

  /** As `NamedSubscribers.join`. @throws {RequestError} and `log_unavailable`, `log_full` */
  async join(stream: string, subscriber: string, start: Start): Promise<{ start: Start } | null> {
    const { named } = this.#options;
    const key = { stream, subscriber };
    const judge = () => named.judgeJoin(stream, subscriber, start);
    const joined = await this.#inTurn(key, async () => {
      await this.#look(key);
      return this.#decide(key, judge);
    });
    if (joined === null) return null;
    await this.#announce(key, joined);
    return { start: joined.start };
  }

  /** As `NamedSubscribers.acknowledge`. @throws {RequestError} and `log_unavailable`, `log_full` */
  async acknowledge(stream: string, subscriber: string, cursor: Cursor): Promise<string | null> {
    const { named } = this.#options;
    const key = { stream, subscriber };
    const judge = () => named.judgeAcknowledgement(stream, subscriber, cursor);
    const judged = await this.#inTurn(key, async () => {
      // Where it moves, it counts only if nobody was faster. Any other outcome may come of what this broker does not know yet.
      if (attempt(judge)?.change !== 'moves') await this.#look(key);
      return this.#decide(key, judge);
    });
    if (judged === null) return null;
    await this.#announce(key, judged);
    named.acknowledgementTaken();
    return formatCursor(judged.acked.epoch, judged.acked.seq);
  }

  /** As `NamedSubscribers.forget`. @throws {RequestError} `log_unavailable`, `log_full` */
  forget(stream: string, subscriber: string): Promise<boolean> {
    const { replica, named } = this.#options;
    const key = { stream, subscriber };
    return this.#inTurn(key, async () => {
      for (let tries = 0; tries < TRIES_MAX; tries++) {
        await this.#look(key);
        const epoch = replica.find(stream)?.epoch;
        if (epoch === undefined || !named.has(epoch, subscriber)) return false;
        if (await this.#write(key, null)) return true;
      }
      throw tooMany();
    });
  }

  /** Judges until what comes of it is written down, where it has to be. */
  async #decide<J extends Judged>(key: SubscriberKey, judge: () => J | null): Promise<Decided<J> | null> {
    for (let tries = 0; tries < TRIES_MAX; tries++) {
      const judged = judge();
      if (judged === null) return null;
      const before = this.#options.subscribers.find(key)?.stored.entry ?? null;
      if (judged.acked === null || judged.change === 'none') return { ...judged, before: undefined };
      if (await this.#write(key, judged.acked)) return { ...judged, before };
      await this.#look(key);
    }
    throw tooMany();
  }

  /**
   * Takes up what the log has of the subscriber and its stream. That it has not moved on is believed only when it is confirmed,
   * or it would be given again what it has acknowledged.
   * @throws {RequestError} `log_unavailable`
   */
  async #look(key: SubscriberKey): Promise<void> {
    const { replication, subscribers } = this.#options;
    await replication.refresh(key.stream, () => false);
    try {
      await subscribers.look(key);
    } catch (error) {
      throw replication.unavailable(error);
    }
    replication.checkHealthy();
  }

  /** @returns whether it is the newest; if not, it has to be judged anew. @throws {RequestError} `log_full` */
  async #write(key: SubscriberKey, acked: Cursor | null): Promise<boolean> {
    const { log, replica, replication, subscribers, names, nowMs } = this.#options;
    replication.checkHealthy();
    const stream = replica.find(key.stream);
    if (stream === undefined) return false;
    const known = subscribers.find(key);
    const after = known?.tailAt ?? 0;
    const { origin } = stream.entry;
    const before = known?.stored.entry;
    const isKnown = before !== undefined && before.origin === origin && before.acked !== null;
    const entry = {
      origin,
      acked: acked === null ? null : formatCursor(acked.epoch, acked.seq),
      ...following(known?.stored),
      joinedMs: isKnown ? before.joinedMs : Math.max(nowMs(), (before?.joinedMs ?? 0) + 1),
      atMs: nowMs(),
      writer: names.next(),
    };
    try {
      const at = await log.subscribers.append(key, entry, after);
      return at !== null && (await subscribers.appended({ ...key, at, entry }, after));
    } catch (error) {
      if (!(error instanceof LogError)) throw error;
      if (error.fault === 'full') throw replication.unavailable(error);
      await replication.recovered(error);
    }
    // Nobody knows whether it went in: what follows the entry that it was to follow says so.
    await this.#look(key);
    return subscribers.find(key)?.stored.entry.writer === entry.writer;
  }

  /**
   * Says in the stream that somebody holds events of it who held none before: a broker that has not heard of that may not
   * move the floor, and whatever it says of the floor is refused meanwhile. Who was told of an error instead comes again.
   */
  async #announce(key: SubscriberKey, { before: known }: Pick<Decided<Judged>, 'before'>): Promise<void> {
    const { replica, replication, subscribers } = this.#options;
    const stream = replica.find(key.stream);
    const newest = subscribers.find(key)?.stored;
    if (stream === undefined || newest === undefined || stream.entry.config.overflow !== 'reject') return;
    const joinedAt = newest.at;
    if (stream.entry.joinedAt >= joinedAt) return;
    const before = known === undefined ? await this.#entryBefore(newest) : known;
    if (before === undefined) return;
    const acked = cursorOf(before?.acked ?? null);
    if (acked !== null && holds(acked, { epoch: stream.epoch, floor: stream.entry.floor })) return;
    try {
      await replication
        .writerOf(stream)
        .change((entry) => (entry.joinedAt >= joinedAt ? null : { ...entry, joinedAt }));
    } catch (error) {
      if (!(error instanceof StreamGone)) throw error;
    }
  }

  /** Null: there was none. Undefined: it has been deleted, as happens to one who has moved since. */
  async #entryBefore({ entry, ...key }: StoredSubscriber): Promise<SubscriberEntry | null | undefined> {
    const { log, replication } = this.#options;
    const { previous } = entry;
    if (previous === 0) return null;
    try {
      const before = await log.subscribers.next(key, previous);
      return before?.at === previous ? before.entry : undefined;
    } catch (error) {
      throw replication.unavailable(error);
    }
  }

  #inTurn<T>({ stream, subscriber }: SubscriberKey, act: () => Promise<T>): Promise<T> {
    const turn = `${stream}/${subscriber}`;
    const done = (this.#turns.get(turn) ?? Promise.resolve()).then(act);
    const ended = done.then(
      () => undefined,
      () => undefined,
    );
    this.#turns.set(turn, ended);
    void ended.then(() => {
      if (this.#turns.get(turn) === ended) this.#turns.delete(turn);
    });
    return done;
  }
}

/** What is judged by what is known here; undefined where that is an error, which has to be looked at again. */
function attempt<J>(judge: () => J): J | undefined {
  try {
    return judge();
  } catch (error) {
    if (!(error instanceof RequestError)) throw error;
    return undefined;
  }
}

function cursorOf(acked: string | null): Cursor | null {
  return acked === null ? null : parseCursor(acked);
}

function tooMany(): RequestError {
  return new RequestError('backpressure', 'too many move it at a time', {}, { 'Retry-After': '1' });
}
