/**
 * Reads events for a page: from the ring, or from the durable log where the ring has them no longer.
 */

import { type ParsedEvent, parseFrames } from '../core/sse-parse.js';
import { FrameRun, READ_OK, READ_OVERTAKEN, type RingReader } from '../ring/read.js';
import type { EdgeStream } from './edge-stream.js';
import type { ReplayPort } from './replay.js';

/** A constant of read.ts, and the events with READ_OK. */
export interface PageRead {
  readonly found: number;
  readonly events: ParsedEvent[];
}

export class PageReader {
  readonly #reader: RingReader;
  readonly #replay: ReplayPort | null;
  readonly #bytesMax: number;
  readonly #run = new FrameRun(0);

  constructor(options: { reader: RingReader; replay: ReplayPort | null; bytesMax: number }) {
    this.#reader = options.reader;
    this.#replay = options.replay;
    this.#bytesMax = options.bytesMax;
  }

  /** Events after a cursor: a page's bytes of frames at most, or one event if it is larger. */
  async read(stream: EdgeStream, afterSeq: number): Promise<PageRead> {
    const found = this.#reader.read(stream, afterSeq, this.#bytesMax, this.#run);
    // Copied, for the events are views on it, and others read before the caller is resumed.
    if (found === READ_OK) return { found, events: parseFrames(this.#run.frames.slice()) };
    if (found !== READ_OVERTAKEN || this.#replay === null || this.#reader.lowestSeq > afterSeq + 1) {
      return { found, events: [] };
    }
    const run = await this.#replay.read(stream, afterSeq, this.#bytesMax);
    return run === null ? { found, events: [] } : { found: READ_OK, events: parseFrames(run.frames) };
  }
}
