/**
 * Which connection reads which stream. There is one at a time, the newest: clients come back while the connection that
 * they lost still looks alive from here, and must not be refused for that.
 */

import { FrontCount, type FrontCounts } from './front-counts.js';
import type { ClientRequest } from './messages.js';
import type { MessageStream, ReaderName } from './stream/message-stream.js';

export interface ReadersOptions {
  /** Takes a reader off its stream; `left` follows, in any case. */
  readonly endReader: (reader: ReaderName) => void;
  readonly counts: FrontCounts;
}

/** A connection, and the mount at which it asked. */
type Reader = Pick<ClientRequest, 'reader' | 'mount'>;

interface Reading {
  readonly stream: MessageStream;
  readonly mount: number;
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
  async takeOver(stream: MessageStream, { reader, mount }: Reader): Promise<boolean> {
    const before = stream.reader;
    const reading = before === null ? undefined : this.#open.get(before);
    const begun = reading === undefined ? Promise.resolve() : reading.begun.then(() => reading.over);
    this.#add(stream, { reader, mount }, begun);
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
  first(stream: MessageStream, reader: Reader, left?: () => void): void {
    this.#add(stream, reader, Promise.resolve(), left);
  }

  /** Mounts of those who read, one for each. */
  *mounts(): Generator<number> {
    for (const { mount } of this.#open.values()) yield mount;
  }

  /** @returns the mount that it read of; null: it was off its stream before. */
  left(reader: ReaderName, deliveredSeq: number): number | null {
    const reading = this.#open.get(reader);
    if (reading === undefined) return null;
    this.#open.delete(reader);
    reading.stream.left(reader, deliveredSeq);
    reading.end();
    return reading.mount;
  }

  #add(stream: MessageStream, { reader, mount }: Reader, begun: Promise<void>, left?: () => void): void {
    let end = (): void => undefined;
    const over = new Promise<void>((resolve) => {
      end = () => {
        left?.();
        resolve();
      };
    });
    stream.reader = reader;
    this.#open.set(reader, { stream, mount, begun, over, end });
  }
}
