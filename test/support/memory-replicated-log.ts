import { LogError } from '#gapless/storage/event-log.js';
import type { LogEntry } from '#gapless/storage/log-entry.js';
import type { Follower, LogExtent, ReplicatedLog, StoredEntry } from '#gapless/storage/replicated-log.js';

/** What becomes of an append: it goes in and is answered; it goes in and the answer is lost; it is lost itself. */
export type AppendFate = 'answered' | 'unanswered' | 'lost';

/** What brokers share: messages in the order in which they came, and who follows them. */
export class SharedMedium {
  identity = 'first';
  entries: StoredEntry[] = [];
  lastAt = 0;
  readonly followers = new Set<Follower>();
  /** Settles when all that was proposed is there. */
  proposed: Promise<unknown> = Promise.resolve();

  newest(stream: string): StoredEntry | null {
    return this.entries.findLast((stored) => stored.stream === stream) ?? null;
  }

  /** @param after null: whatever is there, as when the log compared before another append. */
  put(stream: string, entry: LogEntry, body: Uint8Array, after: number | null): number | null {
    if (after !== null && (this.newest(stream)?.at ?? 0) !== after) return null;
    const stored = { stream, at: ++this.lastAt, entry: structuredClone(entry), body: body.slice() };
    this.entries.push(stored);
    for (const follower of [...this.followers]) follower.received(stored);
    return stored.at;
  }
}

/** One broker's way to the medium, with faults that a test, or chance, chooses. */
export class MemoryReplicatedLog implements ReplicatedLog {
  readonly bodyBytesMax = 100_000;
  /** False: appends may pass that were compared with what was there a moment before. */
  isExact = true;
  /** The fate of the next append. */
  fate: () => AppendFate = () => 'answered';
  /** Whether it can be asked at all. */
  isAway = false;
  /** What is appended is followed by others; this broker hears of it only by its own reads. */
  isDeaf = false;
  readonly #medium: SharedMedium;
  /** Time that passes before each answer. */
  readonly #pause: () => Promise<void>;

  constructor(medium: SharedMedium, pause: () => Promise<void> = async () => undefined) {
    this.#medium = medium;
    this.#pause = pause;
  }

  async open(): Promise<LogExtent> {
    await this.#reach();
    return { identity: this.#medium.identity, lastAt: this.#medium.lastAt };
  }

  async append(stream: string, entry: LogEntry, body: Uint8Array, after: number): Promise<number | null> {
    await this.#reach();
    const fate = this.fate();
    if (fate === 'lost') throw new LogError('io', 'told to lose it');
    const at =
      this.isExact || after === 0
        ? this.#medium.put(stream, entry, body, after)
        : await this.#propose(stream, entry, body, after);
    await this.#pause();
    if (fate === 'unanswered') throw new LogError('io', 'told to lose the answer');
    return at;
  }

  /** Compared when it is proposed, and there a moment later, after all that were proposed before. */
  async #propose(stream: string, entry: LogEntry, body: Uint8Array, after: number): Promise<number | null> {
    const medium = this.#medium;
    if ((medium.newest(stream)?.at ?? 0) !== after) return null;
    const put = medium.proposed.then(() => this.#pause()).then(() => medium.put(stream, entry, body, null));
    medium.proposed = put;
    return put;
  }

  async newest(stream: string): Promise<StoredEntry | null> {
    await this.#reach();
    return this.#medium.newest(stream);
  }

  async next(stream: string, from: number): Promise<StoredEntry | null> {
    await this.#reach();
    return this.#medium.entries.find((stored) => stored.stream === stream && stored.at >= from) ?? null;
  }

  async dropBelow(stream: string, at: number): Promise<void> {
    await this.#reach();
    this.#medium.entries = this.#medium.entries.filter(
      (stored) => stored.stream !== stream || stored.at >= at,
    );
  }

  async follow(follower: Follower): Promise<() => void> {
    await this.#reach();
    const medium = this.#medium;
    const newest = new Map(medium.entries.map((stored) => [stored.stream, stored]));
    for (const stored of [...newest.values()].sort((a, b) => a.at - b.at)) follower.received(stored);
    follower.upToDate();
    const own: Follower = {
      ...follower,
      received: (stored) => {
        if (!this.isDeaf) follower.received(stored);
      },
    };
    medium.followers.add(own);
    return () => medium.followers.delete(own);
  }

  async close(): Promise<void> {}

  async #reach(): Promise<void> {
    await this.#pause();
    if (this.isAway) throw new LogError('io', 'told to be away');
  }
}
