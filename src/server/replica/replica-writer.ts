/**
 * Appends to one stream of a replicated log. One append is under way at a time, of all publishes that came meanwhile;
 * it is to stand after the newest entry that this broker took up, and is refused where another broker was first: then
 * that one's entry is taken up, and the publishes are judged and given their seqs anew. Nobody has seen the first ones.
 *
 * Single owner: the main thread.
 */

import type { Placed, Publish } from '../../broker/replicated-publish.js';
import { RequestError } from '../../errors.js';
import { LogCounter, type LogStatus } from '../../ring/log-status.js';
import { LogError } from '../../storage/event-log.js';
import { encodeParts, type LogEntry } from '../../storage/jetstream/log-entry.js';
import type { ReplicatedLog } from '../../storage/replicated-log.js';
import { appendWithRoom } from './append-with-room.js';
import { entryOfChange, entryOfEvents, type Written } from './following-entry.js';
import type { LogRoom } from './log-room.js';
import { judgeGroup } from './publish-judge.js';
import type { Replica } from './replica.js';
import type { ReplicaHeld } from './replica-held.js';
import type { ReplicaObserver, ReplicaStream } from './replica-stream.js';
import { Rivals } from './rivals.js';
import { StreamGone, type Waiting, waitingPublish } from './waiting-publish.js';
import type { WriteNames } from './write-names.js';

export interface WriterParts {
  readonly log: ReplicatedLog;
  readonly replica: Replica;
  readonly held: ReplicaHeld;
  readonly status: LogStatus;
  readonly room: LogRoom;
  readonly names: WriteNames;
  /** While the log fails, or what it has lost is found out: resolves when that is over. Nothing is appended before. */
  readonly recovering: () => Promise<void> | null;
  /** Resolves when most machines of the log have confirmed that what is read next is all there is. @throws {LogError} */
  readonly confirmed: () => Promise<void>;
  /** The log failed; resolves when it can be asked again. */
  readonly recovered: (error: LogError) => Promise<void>;
  readonly nowMs: () => number;
}

/** What becomes of the newest entry; null: nothing has to change. */
export type Change = (entry: LogEntry) => LogEntry | null;

type Item = { readonly publish: Waiting } | { readonly change: Change; done(error?: Error): void };

interface Group {
  readonly entry: LogEntry;
  readonly body: Uint8Array;
  readonly items: readonly Item[];
  /** Where each publish stands, once the entry is in the log. */
  readonly places: readonly Placed[];
  /** On the clock of `performance`, milliseconds. */
  readonly takenAtMs: number;
}

/** Publishes that wait for one stream, bytes of their parts. */
const QUEUE_BYTES_MAX = 16 * 1024 * 1024;
/** How long a publish waits for a log that cannot take it. */
const COMMIT_MS_MAX = 10_000;
/** How long is waited for what is known to be in the log to come by itself, before it is read. */
const FOLLOWED_MS_MAX = 50;
const SOON = { 'Retry-After': '1' };
/** After so many appends with claims it is looked up which of the older ones are still remembered. */
const CLAIMS_LOOK = 256;

export class ReplicaWriter implements ReplicaObserver {
  readonly #parts: WriterParts;
  readonly #stream: ReplicaStream;
  #queue: Item[] = [];
  #queuedBytes = 0;
  #group: Group | null = null;
  #isRunning = false;
  #claimedAppends = 0;
  readonly #rivals: Rivals;
  /** Its last append was refused: the next one is to be seen, whether it counts or not. */
  #isOutrun = false;

  constructor(parts: WriterParts, stream: ReplicaStream) {
    this.#parts = parts;
    this.#stream = stream;
    this.#rivals = new Rivals(parts.names);
    stream.observer = this;
  }

  /**
   * @throws {RequestError} why it is not appended, or `commit_unknown`
   * @throws {StreamGone} it was not appended, because the stream is no more
   */
  publish(publish: Publish): Promise<Placed> {
    const bytes = publish.parts.bytes.length;
    if (this.#queuedBytes > 0 && this.#queuedBytes + bytes > QUEUE_BYTES_MAX) {
      throw new RequestError('backpressure', undefined, {}, SOON);
    }
    this.#queuedBytes += bytes;
    return new Promise<Placed>((resolve, reject) => {
      const timer = setTimeout(() => this.#expire(item), COMMIT_MS_MAX);
      const settled = (): void => {
        clearTimeout(timer);
        this.#queuedBytes -= bytes;
      };
      const item: Item = { publish: waitingPublish(publish, { settled, placed: resolve, refused: reject }) };
      this.#enqueue(item);
    });
  }

  /**
   * Changes what the stream's newest entry says. Resolves when it is so.
   * @throws {StreamGone} @throws {RequestError} `commit_unknown`
   */
  change(change: Change): Promise<void> {
    return new Promise((resolve, reject) => {
      this.#enqueue({ change, done: (error) => (error === undefined ? resolve() : reject(error)) });
    });
  }

  advanced(entry: LogEntry): void {
    this.#rivals.won(entry);
    const group = this.#group;
    if (group === null || group.entry.writer !== entry.writer) return;
    this.#group = null;
    this.#count(group);
    let index = 0;
    for (const item of group.items) {
      if ('publish' in item) item.publish.placed(group.places[index++] as Placed);
      else item.done();
    }
  }

  lost(entry: LogEntry): void {
    this.#rivals.lost(entry);
  }

  /** The append under way may be among the entries that were passed over: nobody can tell any more. */
  jumped(): void {
    this.#giveUp(new RequestError('commit_unknown', undefined, {}, SOON));
  }

  gone(): void {
    this.jumped();
    for (const item of this.#queue.splice(0)) fail(item, new StreamGone());
  }

  #enqueue(item: Item): void {
    if (this.#stream.isGone) return fail(item, new StreamGone());
    this.#queue.push(item);
    void this.#run();
  }

  /** What waits is not appended any more; of what is under way nobody knows. */
  #expire(item: Item): void {
    const at = this.#queue.indexOf(item);
    const code = at < 0 ? 'commit_unknown' : 'log_unavailable';
    if (at >= 0) this.#queue.splice(at, 1);
    fail(item, new RequestError(code, undefined, {}, SOON));
  }

  async #run(): Promise<void> {
    if (this.#isRunning) return;
    this.#isRunning = true;
    try {
      while (this.#queue.length > 0) {
        try {
          await this.#parts.recovering();
          await this.#rivals.turn();
          await this.#step();
        } catch (error) {
          if (!(error instanceof LogError)) throw error;
          await this.#parts.recovered(error);
        }
      }
    } finally {
      this.#isRunning = false;
    }
  }

  /** @throws {LogError} nothing was appended by it; what waits still does. */
  async #step(): Promise<void> {
    const group = await this.#take();
    if (group === null) return;
    this.#group = group;
    for (let isFirst = true; this.#group === group; isFirst = false) {
      // The entry of another broker follows the one that this was to follow, so this one would never count.
      if (this.#stream.at !== group.entry.previous) return this.#judgeAgain(group);
      const recovering = this.#parts.recovering();
      if (recovering === null) await this.#append(group, isFirst);
      // Nothing of it can be in the log: it goes on where the stream is then.
      else if (isFirst) return this.#judgeAgain(group);
      else await recovering;
    }
  }

  async #append(group: Group, isFirst: boolean): Promise<void> {
    const { log, replica, recovered, room } = this.#parts;
    const { name, tailAt: after } = this.#stream;
    try {
      const { entry, body } = group;
      const compared = this.#isOutrun ? null : after;
      const at = await appendWithRoom(log, this.#stream, { entry, body, after: compared });
      this.#isOutrun = at === null;
      // Positions are given again: what this was to follow is lost.
      if (at !== null && at <= after) throw this.#stream.contradicted();
      const isNext = at === after + 1 || (log.isExact && compared !== null);
      if (at !== null) return await this.#appended(group, { at, isNext });
    } catch (error) {
      if (!(error instanceof LogError)) throw error;
      this.#parts.status.add(LogCounter.failedCommits, 1);
      if (error.fault === 'full') {
        room.refused();
        // Of one that was tried before, nobody knows what became of the first try.
        return this.#giveUp(new RequestError(isFirst ? 'log_full' : 'commit_unknown', undefined, {}, SOON));
      }
      await recovered(error);
      // It may have been appended all the same: what follows the entry that it was to follow says so.
      await replica.catchUp(name).catch(ignoreLogError);
      return;
    }
    // If it is refused at its first try, it was not appended. Later, what was first may be an earlier try of itself.
    if (isFirst) this.#judgeAgain(group);
    if (await this.#stream.hasTail(after + 1, FOLLOWED_MS_MAX)) return;
    try {
      await replica.catchUp(name);
    } catch (error) {
      if (!(error instanceof LogError)) throw error;
      // An earlier try of it may be in the log, and is looked for once more.
      return await recovered(error);
    }
    if (this.#stream.tailAt === after && !this.#stream.isGone) {
      await recovered(new LogError('io', 'the newest entry of a stream is not in the log'));
    }
  }

  /**
   * It is in the log. Whether it counts is known when all entries before it were looked at.
   * @param isNext none of the stream lies between it and the newest that was looked at.
   * @throws {LogError}
   */
  async #appended(group: Group, { at, isNext }: { at: number; isNext: boolean }): Promise<void> {
    const { replica } = this.#parts;
    const stream = this.#stream;
    if (isNext) {
      replica.takeUp({ stream: stream.name, at, entry: group.entry, body: group.body });
    }
    if (!(await stream.hasTail(at, FOLLOWED_MS_MAX))) await replica.catchUp(stream.name);
  }

  #judgeAgain(group: Group): void {
    if (this.#group !== group) return;
    this.#group = null;
    this.#queue.unshift(...group.items);
  }

  /** What is appended next; null when there is nothing, or what is first has to be looked at again. */
  async #take(): Promise<Group | null> {
    const { replica, log, held, nowMs } = this.#parts;
    const stream = this.#stream;
    const first = this.#queue[0];
    if (first === undefined) return null;
    if ('change' in first) return this.#takeChange(first);
    if (first.publish.claim !== null) (await replica.bookOf(stream)).forget(nowMs());
    const isHeld = await held.isFull(stream);
    const publishes = this.#publishesFirst();
    const { accepted, places, claims, refused, needsNewest } = judgeGroup(publishes, stream, {
      bytesMax: log.bodyBytesMax,
      isHeld,
    });
    const taken = new Set<Waiting>([...accepted, ...refused]);
    this.#queue = this.#queue.filter((item) => !('publish' in item) || !taken.has(item.publish));
    if (accepted.length === 0) {
      if (needsNewest === null) return null;
      await this.#parts.confirmed();
      await replica.catchUp(stream.name);
      needsNewest.isFresh = true;
      return null;
    }
    const body = encodeParts(accepted.map(({ parts }) => parts));
    const { count, list } = claims;
    const bytes = accepted.reduce((sum, { parts }) => sum + parts.bytes.length, 0);
    const claimsAfter = list.length > 0 ? this.#claimsAfter() : stream.entry.claimsAfter;
    const entry = entryOfEvents(stream, { count, bytes, claims: list, claimsAfter }, this.#written());
    const items = accepted.map((publish) => ({ publish }));
    return { entry, body, items, places, takenAtMs: performance.now() };
  }

  #takeChange(item: Extract<Item, { change: Change }>): Group | null {
    this.#queue.shift();
    const changed = item.change(this.#stream.entry);
    if (changed === null) {
      item.done();
      return null;
    }
    const entry = entryOfChange(this.#stream, changed, this.#written());
    return { entry, body: encodeParts([]), items: [item], places: [], takenAtMs: performance.now() };
  }

  #written(): Written {
    const { names, nowMs } = this.#parts;
    return { writer: names.next(), nowMs: nowMs() };
  }

  /** Where entries begin that tell of remembered publishers. Looked up now and then, for it goes through all of them. */
  #claimsAfter(): number {
    const { entry, at, book } = this.#stream;
    if (entry.claimsAfter === null) return at;
    if (++this.#claimedAppends % CLAIMS_LOOK === 0) return book?.oldestAfter() ?? at;
    return entry.claimsAfter;
  }

  #publishesFirst(): Waiting[] {
    const publishes: Waiting[] = [];
    for (const item of this.#queue) {
      if ('change' in item) break;
      publishes.push(item.publish);
    }
    return publishes;
  }

  #giveUp(error: Error): void {
    const group = this.#group;
    this.#group = null;
    for (const item of group?.items ?? []) fail(item, error);
  }

  #count({ entry, body, takenAtMs }: Group): void {
    const { status } = this.#parts;
    status.observeCommit((performance.now() - takenAtMs) / 1000);
    status.add(LogCounter.committedEvents, entry.count);
    status.add(LogCounter.committedBytes, body.length);
  }
}

function ignoreLogError(error: unknown): void {
  if (!(error instanceof LogError)) throw error;
}

function fail(item: Item, error: Error): void {
  if ('publish' in item) item.publish.refused(error);
  else item.done(error);
}
