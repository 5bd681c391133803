/**
 * What is made of a run of frames for those who do not take it as it is: a choice of event types, another notation.
 * Made once a run for all who want the same.
 */

import { filterFrames } from '../core/sse-parse.js';

/** A run as it is written. */
export interface Rendered {
  /** Empty where nothing is left of the run. */
  readonly frames: Uint8Array;
  /** Events in it. */
  readonly count: number;
}

export interface Rendering {
  /** Equal renderings have equal keys. */
  readonly key: string;
  /** Whether events are left out, so that the peer does not learn every id from what it is given (contract 4.9). */
  readonly filters: boolean;
  render(frames: Uint8Array, epoch: string): Rendered;
}

/** The event types that a peer wants (contract 4.9); `message` stands for the untyped. */
export type EventTypes = ReadonlySet<string>;

/** Filters that name the same types are the same, in whatever order. */
export function typesKey(types: EventTypes): string {
  return [...types].sort().join(',');
}

/** Frames as they are, but only those of these types. */
export function typesRendering(types: EventTypes): Rendering {
  return { key: `sse:${typesKey(types)}`, filters: true, render: (frames) => filterFrames(frames, types) };
}
