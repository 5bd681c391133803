/** A place in a stream (contract 1). */
export interface Position {
  epoch: string;
  seq: number;
}

/** A publish was about to be sent. Each content must be unlike all others of the stream. */
export interface PublishBegun {
  kind: 'publish-begun';
  publish: string;
  stream: string;
  contents: readonly string[];
  /** One for each content; absent where no filtered reader is judged. */
  types?: readonly string[];
}

/** The broker answered the publish with success. */
export interface PublishAcked {
  kind: 'publish-acked';
  publish: string;
  epoch: string;
  first: number;
  last: number;
}

/** The broker said plainly that nothing was appended. A publish with neither answer may have happened. */
export interface PublishRefused {
  kind: 'publish-refused';
  publish: string;
}

/**
 * A connection or an observer was about to send its question. What others were told before that the answer has to
 * know; without this observation it is not held to that.
 */
export interface Asked {
  kind: 'asked';
  by: string;
  stream: string;
}

/** A connection was accepted. `after` is the seq asked for; for a reader that asked for none, the primed position. */
export interface Connected {
  kind: 'connected';
  connection: string;
  reader: string;
  stream: string;
  epoch: string;
  after: number;
  /** It asked for a word or for nothing: it begins anew, and what lies between is not owed to it. */
  joined?: boolean;
  /** Reads only some event types: seqs rise, but not one by one (contract 4.9). */
  filtered?: boolean;
  /** Those types, `message` for the untyped; implies `filtered`, and what it left out is judged. */
  types?: readonly string[];
  /** As the answer's headers have them. */
  floor?: number;
  head?: number;
}

export interface EventSeen {
  kind: 'event';
  connection: string;
  epoch: string;
  seq: number;
  content: string;
}

/** An id without an event moved a filtered reader on. */
export interface Advanced {
  kind: 'advanced';
  connection: string;
  epoch: string;
  seq: number;
}

/** The plain refusal: as an answer to a resume, or as the last event of a connection. */
export interface Refused {
  kind: 'refused';
  connection: string;
  reader: string;
  stream: string;
  reason: string;
  cursor: Position;
  /** The epoch the stream has now; null when there is no such stream. */
  epoch: string | null;
  floor: number;
  head: number;
}

/**
 * A terminal event (contract 4.7). `last` is what it names: the last event of a closed stream, or the last that was
 * written of a deleted one. The 204 at the end of a closed stream is a connection that ends at its cursor.
 */
export interface Ended {
  kind: 'ended';
  connection: string;
  reason: 'closed' | 'deleted';
  last: Position;
}

/** The reader waited until nothing more was owed to it: it must have everything acknowledged so far. */
export interface CaughtUp {
  kind: 'caught-up';
  connection: string;
}

/** One observer asked for positions, one question at a time: the lowest seq that can be read, the highest that may be. */
export interface PositionsSeen {
  kind: 'positions';
  observer: string;
  stream: string;
  epoch: string;
  floor: number;
  head: number;
}

/**
 * Every event from `from` to the head was observed, and no publish that has begun so far can take effect any more, as
 * after the death of the process that took it. What is not there now must never come.
 */
export interface Settled {
  kind: 'settled';
  stream: string;
  epoch: string;
  from: number;
}

export type Observation =
  | PublishBegun
  | PublishAcked
  | PublishRefused
  | Asked
  | Connected
  | EventSeen
  | Advanced
  | Refused
  | Ended
  | CaughtUp
  | PositionsSeen
  | Settled;
