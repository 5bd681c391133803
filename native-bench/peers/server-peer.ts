import type { Peer } from './peer.js';

/** A peer that fans out: takes POST, delivers SSE. */
export interface ServerPeer extends Peer {
  place(topic: string): Place;
}

/** Where a load publishes and subscribes, and how. `@` in a path stands for the number of the stream. */
export interface Place {
  readonly publishPath: string;
  readonly subscribePath: string;
  /** Where a subscriber gets all that there is, from the beginning; absent where nothing is kept. */
  readonly replayPath?: string;
  /** What the body of a publish has around the event's data; nothing unless said. */
  readonly body?: { readonly before: string; readonly after: string };
  /** How many subscribers are on their way at a time while a load sets up; the load client's choice unless said. */
  readonly opening?: number;
}
