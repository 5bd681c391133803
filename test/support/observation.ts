import type { Position } from './cursor.js';

/** A publish was about to be sent. Each content must be unlike all others of the stream. */
export interface PublishBegun {
  kind: 'publish-begun';
  publish: string;
  stream: string;
  contents: readonly string[];
}

/** The broker answered the publish with success. */
export interface PublishAcked {
  kind: 'publish-acked';
  publish: string;
  epoch: string;
  first: number;
  last: number;
}

/** A connection was accepted. `after` is the seq asked for; for a reader that asked for none, the primed position. */
export interface Connected {
  kind: 'connected';
  connection: string;
  reader: string;
  stream: string;
  epoch: string;
  after: number;
  /** Reads only some event types: seqs rise, but not one by one (contract 4.9). */
  filtered?: boolean;
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

/** The reader waited until nothing more was owed to it: it must have everything acknowledged so far. */
export interface CaughtUp {
  kind: 'caught-up';
  connection: string;
}

/** One observer asked for positions, one question at a time. */
export interface PositionsSeen {
  kind: 'positions';
  observer: string;
  stream: string;
  epoch: string;
  floor: number;
  head: number;
}

export type Observation =
  | PublishBegun
  | PublishAcked
  | Connected
  | EventSeen
  | Advanced
  | Refused
  | CaughtUp
  | PositionsSeen;
