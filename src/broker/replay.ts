/**
 * Runs of events from the durable log, for readers whose next event has left the ring. Asked for once by whoever
 * comes first and shared by all who stand at the same cursor; what came is kept for a while, for in a storm of
 * resumes everybody asks for the same.
 */

import type { EdgeStream } from './edge-stream.js';
import type { ReplayRun, SharedRun } from './shared-run.js';

/** Reads from the log, on another thread. Null: the event after the cursor is not there any more. */
export interface ReplayPort {
  read(stream: EdgeStream, afterSeq: number, bytesMax: number): Promise<ReplayRun | null>;
}

/** What there is after a cursor; `waiting` while it is on its way. */
export type Replayed = SharedRun | 'waiting' | 'missing' | 'failed';

interface Entry {
  replayed: Replayed;
  bytes: number;
}

export class Replay {
  readonly #port: ReplayPort;
  readonly #bytesMax: number;
  readonly #cacheBytesMax: number;
  /** There is an answer for those who stand at this cursor. @returns whether anybody does. */
  readonly #arrived: (stream: EdgeStream, afterSeq: number) => boolean;
  /** Oldest first. Bounded: by its bytes, and by the readers who wait. */
  readonly #entries = new Map<string, Entry>();
  #cachedBytes = 0;

  constructor(options: {
    port: ReplayPort;
    bytesMax: number;
    cacheBytesMax: number;
    arrived: (stream: EdgeStream, afterSeq: number) => boolean;
  }) {
    this.#port = options.port;
    this.#bytesMax = options.bytesMax;
    this.#cacheBytesMax = options.cacheBytesMax;
    this.#arrived = options.arrived;
  }

  /** Gives what is there after a cursor, and asks for it if nobody has. */
  after(stream: EdgeStream, afterSeq: number): Replayed {
    const key = `${stream.epoch}.${afterSeq}`;
    const entry = this.#entries.get(key);
    if (entry !== undefined) {
      // What did not come is asked for again by whoever comes later.
      if (entry.replayed === 'missing' || entry.replayed === 'failed') this.#entries.delete(key);
      return entry.replayed;
    }
    void this.#ask(key, stream, afterSeq);
    return 'waiting';
  }

  async #ask(key: string, stream: EdgeStream, afterSeq: number): Promise<void> {
    const entry: Entry = { replayed: 'waiting', bytes: 0 };
    this.#entries.set(key, entry);
    try {
      const run = await this.#port.read(stream, afterSeq, this.#bytesMax);
      if (run === null) {
        entry.replayed = 'missing';
      } else {
        const count = run.lastSeq - run.firstSeq + 1;
        entry.replayed = { run: { ...run, count }, rendered: new Map() };
        entry.bytes = run.frames.length;
      }
    } catch {
      // The thread that reads has said why.
      entry.replayed = 'failed';
    }
    this.#cachedBytes += entry.bytes;
    this.#makeRoom(key);
    // If nobody takes it, what did not come is not kept: whoever comes later asks again.
    if (!this.#arrived(stream, afterSeq) && typeof entry.replayed === 'string') this.#entries.delete(key);
  }

  /** Forgets the oldest answers beyond the bound, but for the one that has just come. */
  #makeRoom(newest: string): void {
    for (const [key, { replayed, bytes }] of this.#entries) {
      if (this.#cachedBytes <= this.#cacheBytesMax) return;
      if (key === newest || replayed === 'waiting') continue;
      this.#entries.delete(key);
      this.#cachedBytes -= bytes;
    }
  }
}
