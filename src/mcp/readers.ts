/**
 * Which connection reads which stream. There is one at a time, the newest: clients come back while the connection that
 * they lost still looks alive from here, and must not be refused for that.
 */

import { FrontCount, type FrontCounts } from './front-counts.js';
import type { MessageStream, ReaderName } from './message-stream.js';

export interface ReadersOptions {
  /** Takes a reader off its stream; `left` follows, in any case. */
  readonly endReader: (reader: ReaderName) => void;
  readonly counts: FrontCounts;
}

interface Reading {
  readonly stream: MessageStream;
  /** Resolves when the one before is off the stream. */
  readonly begun: Promise<void>;
  /** Resolves when this one is. */
  readonly over: Promise<void>;
  readonly end: () => void;
}

export class Readers {
  readonly #endReader: (reader: ReaderName) => void;
  readonly #counts: FrontCounts;
  /** Bounded by the edges' connections. */
  readonly #open = new Map<ReaderName, Reading>();

  constructor({ endReader, counts }: ReadersOptions) {
    this.#endReader = endReader;
    this.#counts = counts;
  }

  /** Resolves when the reader before is off the stream. @returns false when meanwhile another one has come. */
  async takeOver(stream: MessageStream, reader: ReaderName): Promise<boolean> {
    const before = stream.reader;
    const reading = before === null ? undefined : this.#open.get(before);
    const begun = reading === undefined ? Promise.resolve() : reading.begun.then(() => reading.over);
    this.#add(stream, reader, begun);
    if (before !== null && reading !== undefined) {
      this.#endReader(before);
      this.#counts.add(FrontCount.takeovers, 1);
    }
    await begun;
    if (stream.reader === reader) return true;
    this.left(reader, 0);
    return false;
  }

  /** The reader of a stream that was just made. @param left called when it is off the stream. */
  first(stream: MessageStream, reader: ReaderName, left?: () => void): void {
    this.#add(stream, reader, Promise.resolve(), left);
  }

  left(reader: ReaderName, deliveredSeq: number): void {
    const reading = this.#open.get(reader);
    if (reading === undefined) return;
    this.#open.delete(reader);
    const { stream } = reading;
    stream.deliveredSeq = Math.max(stream.deliveredSeq, deliveredSeq);
    if (stream.reader === reader) stream.reader = null;
    reading.end();
  }

  #add(stream: MessageStream, reader: ReaderName, begun: Promise<void>, left?: () => void): void {
    let end = (): void => undefined;
    const over = new Promise<void>((resolve) => {
      end = () => {
        left?.();
        resolve();
      };
    });
    stream.reader = reader;
    this.#open.set(reader, { stream, begun, over, end });
  }
}
