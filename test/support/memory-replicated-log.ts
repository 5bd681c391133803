import assert from 'node:assert/strict';
import { LogError } from '#gapless/storage/event-log.js';
import type { LogEntry } from '#gapless/storage/jetstream/log-entry.js';
import type {
  Follower,
  LogExtent,
  LogUsage,
  ReplicatedLog,
  StoredEntry,
  StoredSubscriber,
  SubscriberKey,
  SubscriberLog,
} from '#gapless/storage/replicated-log.js';

/** What an entry takes beside its body. */
export const ENTRY_BYTES = 400;

/**
 * What becomes of an append: it goes in and is answered; it goes in and the answer is lost; it is lost itself. `late`: it
 * goes in without an answer after others that came later; a log that is exact loses it.
 */
export type AppendFate = 'answered' | 'unanswered' | 'lost' | 'late';

/** What brokers share: messages in the order in which they came, and who follows them. */
export class SharedMedium {
  identity = 'first';
  entries: StoredEntry[] = [];
  subscribers: StoredSubscriber[] = [];
  lastAt = 0;
  /** What it may hold; null: there is room for everything. */
  bytesMax: number | null = null;
  readonly followers = new Set<Follower>();
  /** Settles when all that was proposed is there. */
  proposed: Promise<unknown> = Promise.resolve();
  /** Times that it has lost something: what was under way then does not go in. */
  losses = 0;
  /** Appends that are late, and after how many others each goes in. */
  #late: { othersLeft: number; readonly put: () => void }[] = [];

  /** It is deleted, and another one made in its place, which has nothing. */
  replace(): void {
    this.identity = 'second';
    this.entries = [];
    this.subscribers = [];
    this.lastAt = 0;
  }

  /** As it is now. */
  copy(): SharedMedium {
    const copy = new SharedMedium();
    copy.identity = this.identity;
    copy.entries = [...this.entries];
    copy.subscribers = [...this.subscribers];
    copy.lastAt = this.lastAt;
    return copy;
  }

  newest(stream: string): StoredEntry | null {
    return this.entries.findLast((stored) => stored.stream === stream) ?? null;
  }

  /** Position of the newest entry that is there. */
  get newestAt(): number {
    return Math.max(0, ...[...this.entries, ...this.subscribers].map(({ at }) => at));
  }

  get bytes(): number {
    return this.entries.reduce((sum, { body }) => sum + ENTRY_BYTES + body.length, 0);
  }

  /** @param after null: whatever is there, as in a log that does not compare. */
  put(stream: string, entry: LogEntry, body: Uint8Array, after: number | null): number | null {
    if (after !== null && (this.newest(stream)?.at ?? 0) !== after) return null;
    if (this.bytesMax !== null && this.bytes + ENTRY_BYTES + body.length > this.bytesMax) {
      throw new LogError('full', 'told to be full');
    }
    const stored = { stream, at: ++this.lastAt, entry: structuredClone(entry), body: body.slice() };
    this.entries.push(stored);
    for (const follower of [...this.followers]) follower.received(stored);
    this.#putLate();
    return stored.at;
  }

  putAfter(others: number, put: () => void): void {
    this.#late.push({ othersLeft: others, put });
  }

  /** Nothing is late any more. */
  putAllLate(): void {
    for (const { put } of this.#late.splice(0)) put();
  }

  /** Loses the newest, as a machine that fails may; positions are given again. */
  lose(count: number): void {
    this.losses++;
    this.#late = [];
    this.lastAt = Math.max(0, this.lastAt - count);
    this.entries = this.entries.filter(({ at }) => at <= this.lastAt);
    this.subscribers = this.subscribers.filter(({ at }) => at <= this.lastAt);
  }

  #putLate(): void {
    for (const late of this.#late) late.othersLeft--;
    const due = this.#late.findIndex(({ othersLeft }) => othersLeft <= 0);
    if (due >= 0) this.#late.splice(due, 1)[0]?.put();
  }

  /** Where the first entry of a stream lies; what was let go of it lay before. */
  madeAt(stream: string): number {
    const first = this.entries.find((stored) => stored.stream === stream);
    return first?.entry.previous === 0 ? first.at : 0;
  }

  newestOf(key: SubscriberKey): StoredSubscriber | null {
    return this.subscribers.findLast((stored) => isOf(stored, key)) ?? null;
  }

  /** As `put`. */
  putOf(key: SubscriberKey, entry: StoredSubscriber['entry'], after: number | null): number | null {
    if (after !== null && (this.newestOf(key)?.at ?? 0) !== after) return null;
    const { stream, subscriber } = key;
    const stored = { stream, subscriber, at: ++this.lastAt, entry: structuredClone(entry) };
    this.subscribers.push(stored);
    for (const follower of [...this.followers]) follower.receivedSubscriber(stored);
    this.#putLate();
    return stored.at;
  }
}

type Put = (after: number | null) => number | null;

function isOf(stored: StoredSubscriber, { stream, subscriber }: SubscriberKey): boolean {
  return stored.stream === stream && stored.subscriber === subscriber;
}

/** One broker's way to the medium, with faults that a test, or chance, chooses. */
export class MemoryReplicatedLog implements ReplicatedLog {
  readonly bodyBytesMax = 100_000;
  /** False: nothing is compared, and what was appended is there a moment later. */
  isExact = true;
  /** The fate of the next append. */
  fate: () => AppendFate = () => 'answered';
  /** After how many others an append goes in that is late. */
  lateBy: () => number = () => 1;
  /** Whether it can be asked at all. */
  isAway = false;
  /** What is appended is followed by others; this broker hears of it only by its own reads. */
  isDeaf = false;
  /** What a machine has that is cut off from the others and answers all the same, until it is asked what it cannot answer. */
  cutOff: SharedMedium | null = null;
  readonly #medium: SharedMedium;
  #isClosed = false;
  /** Time that passes before each answer. */
  readonly #pause: () => Promise<void>;

  constructor(medium: SharedMedium, pause: () => Promise<void> = async () => undefined) {
    this.#medium = medium;
    this.#pause = pause;
  }

  async open(): Promise<LogExtent> {
    await this.#reach();
    return { identity: this.#asked.identity, lastAt: this.#asked.lastAt };
  }

  append(stream: string, entry: LogEntry, body: Uint8Array, after: number | null): Promise<number | null> {
    assert.ok(body.length <= this.bodyBytesMax, 'more than a message takes');
    const medium = this.#medium;
    return this.#append(after, (after) => medium.put(stream, entry, body, after));
  }

  readonly subscribers: SubscriberLog = {
    append: (key, entry, after) => {
      const medium = this.#medium;
      return this.#append(after, (after) => medium.putOf(key, entry, after));
    },
    newest: async (key) => {
      await this.#reach();
      return this.#asked.newestOf(key);
    },
    next: async (key, from) => {
      await this.#reach();
      return this.#asked.subscribers.find((stored) => isOf(stored, key) && stored.at >= from) ?? null;
    },
    dropBelow: async (stream, subscriber, at) => {
      await this.#reach();
      const medium = this.#medium;
      medium.subscribers = medium.subscribers.filter((stored) => {
        const isMeant = stored.stream === stream && (subscriber === null || stored.subscriber === subscriber);
        return !isMeant || stored.at >= at;
      });
    },
  };

  async #append(after: number | null, put: Put): Promise<number | null> {
    const { losses } = this.#medium;
    const putUnlessLost: Put = (after) => {
      if (this.#medium.losses === losses) return put(after);
      throw new LogError('io', 'told to lose what is under way');
    };
    const askedAtMs = performance.now();
    await this.#reach();
    const fate = this.fate();
    if (fate === 'late' && !this.isExact) this.#medium.putAfter(this.lateBy(), () => putUnlessLost(null));
    if (fate === 'lost' || fate === 'late') throw new LogError('io', 'told to lose it');
    const at = this.isExact ? putUnlessLost(after) : await this.#propose(putUnlessLost);
    await this.#pause();
    if (fate === 'unanswered') throw new LogError('io', 'told to lose the answer', { askedAtMs });
    return at;
  }

  /** There a moment later, after all that were proposed before. */
  #propose(put: Put): Promise<number | null> {
    const proposed = this.#medium.proposed.then(() => this.#pause()).then(() => put(null));
    this.#medium.proposed = proposed.catch(() => undefined);
    return proposed;
  }

  async newest(stream: string): Promise<StoredEntry | null> {
    await this.#reach();
    return this.#asked.newest(stream);
  }

  async next(stream: string, from: number): Promise<StoredEntry | null> {
    await this.#reach();
    return this.#asked.entries.find((stored) => stored.stream === stream && stored.at >= from) ?? null;
  }

  async writerAt(at: number): Promise<string | null> {
    await this.#reach();
    const { entries, subscribers } = this.#asked;
    return [...entries, ...subscribers].find((stored) => stored.at === at)?.entry.writer ?? null;
  }

  async dropBelow(stream: string, at: number): Promise<void> {
    await this.#reach();
    this.#medium.entries = this.#medium.entries.filter(
      (stored) => stored.stream !== stream || stored.at >= at,
    );
  }

  async usage(): Promise<LogUsage> {
    await this.#reach();
    return { bytes: this.#medium.bytes, bytesMax: this.#medium.bytesMax };
  }

  async confirm(): Promise<void> {
    await this.#reach();
    this.cutOff = null;
  }

  async follow(lastAt: number, follower: Follower): Promise<() => void> {
    await this.#reach();
    this.cutOff = null;
    const medium = this.#medium;
    const newest = new Map<string, StoredEntry | StoredSubscriber>([
      ...medium.entries.map((stored) => [stored.stream, stored] as const),
      ...medium.subscribers.map((stored) => [`${stored.stream}/${stored.subscriber}`, stored] as const),
    ]);
    const later: StoredEntry[] = [];
    for (const stored of [...newest.values()].sort((a, b) => a.at - b.at)) {
      if ('subscriber' in stored) follower.receivedSubscriber(stored);
      else if (medium.madeAt(stored.stream) > lastAt) later.push(stored);
      else follower.received(stored);
    }
    follower.upToDate();
    for (const stored of later) follower.received(stored);
    const own: Follower = {
      ...follower,
      received: (stored) => {
        if (!this.isDeaf) follower.received(stored);
      },
      receivedSubscriber: (stored) => {
        if (!this.isDeaf) follower.receivedSubscriber(stored);
      },
    };
    medium.followers.add(own);
    return () => medium.followers.delete(own);
  }

  async close(): Promise<void> {
    this.#isClosed = true;
  }

  get #asked(): SharedMedium {
    return this.cutOff ?? this.#medium;
  }

  async #reach(): Promise<void> {
    await this.#pause();
    if (this.isAway || this.#isClosed) throw new LogError('io', 'told to be away');
  }
}
