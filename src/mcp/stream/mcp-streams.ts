/**
 * What the front needs of the broker: streams to append messages to. Readers are the edges' business.
 */

import type { StreamRef } from '../../broker/edge-stream.js';
import type { StreamPositions } from '../../core/resume.js';
import type { ParsedEvent } from '../../core/sse-parse.js';

/** `later`: there is no room, or the log cannot commit now; the same again may work soon. `gone`: there is no such stream. */
export type Appended = 'appended' | 'later' | 'too_large' | 'gone';

export interface Positions extends StreamPositions {
  /** Newest seq, committed or not. */
  readonly head: number;
  /** Whether its end is committed. */
  readonly closed: boolean;
}

/** A stream as another process has left it. */
export interface LeftStream {
  readonly ref: StreamRef;
  readonly isClosed: boolean;
  readonly head: number;
}

/** What several brokers have in common that share a log. Each stream has one of them that appends to it. */
export interface SharedStreams {
  /** What this broker is called in what it writes. */
  readonly broker: string;
  /** The one that has made a stream, by its name; null: any may have. */
  makerOf(name: string): string | null;
  /** The stream that is called so, made where there is none. @throws {RequestError} */
  open(label: string): Promise<StreamRef>;
  /**
   * Appends a note that this broker appends to the stream from now on, if this is still its head. False: it is not, or
   * nobody knows.
   */
  takeOver(stream: StreamRef, head: number): Promise<boolean>;
  /** Goes on with one that was taken over. */
  goOn(stream: StreamRef, head: number): void;
  /** Another broker appends to it. */
  letGo(stream: StreamRef): void;
  /** Whether this broker appends to it. */
  isHere(stream: StreamRef): boolean;
  /** Whether a broker is taken for gone. */
  isGone(broker: string): Promise<boolean>;
}

export interface McpStreams {
  /** Null: this broker is the only one. */
  readonly shared: SharedStreams | null;
  /** Whether a message that is appended may be delivered, without waiting for a log (I4). */
  readonly commitsAtOnce: boolean;
  /** @throws {RequestError} when there is no room for another stream */
  create(): Promise<StreamRef>;
  /**
   * @param type of the event; null: a message of MCP.
   * @param gaveUp called later where a log that brokers share has not taken what was appended: the stream is not whole.
   */
  append(stream: StreamRef, message: string, type: string | null, gaveUp: () => void): Appended;
  /** Null: there is no stream of this name any more. @throws {RequestError} nobody can say now */
  find(name: string): Promise<StreamRef | null>;
  /** Some events after this seq, one at least; none: there are none, or they are gone. @throws {RequestError} not now */
  read(stream: StreamRef, afterSeq: number): Promise<readonly ParsedEvent[]>;
  /** Null: there is no such stream any more. */
  positions(stream: StreamRef): Positions | null;
  /** Nothing more is appended; readers end when they have all. */
  close(stream: StreamRef): void;
  remove(stream: StreamRef): void;
  /** Has its time to live begin anew. False: there is no such stream any more. */
  touch(stream: StreamRef): boolean;
}
