/**
 * A run of frames as it is given to many: read once, and rendered once for all who want the same made of it.
 */

import type { Rendered, Rendering } from './rendering.js';

/** A run as it goes on the wire. */
export interface ReplayRun {
  readonly firstSeq: number;
  readonly lastSeq: number;
  readonly frames: Uint8Array;
}

/** A run that many subscribers are given, with what renderings make of it, by their keys. */
export interface SharedRun {
  readonly run: ReplayRun & { readonly count: number };
  readonly rendered: Map<string, Rendered>;
}

/** What is kept of a run in other forms than its own; filters are the clients' to invent. */
const RENDERINGS_MAX = 8;

/** The run as a subscriber wants it. */
export function rendered(shared: SharedRun, rendering: Rendering, epoch: string): Rendered {
  let made = shared.rendered.get(rendering.key);
  if (made === undefined) {
    if (shared.rendered.size === RENDERINGS_MAX) shared.rendered.clear();
    made = rendering.render(shared.run.frames, epoch);
    shared.rendered.set(rendering.key, made);
  }
  return made;
}
