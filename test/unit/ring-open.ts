import { openStream } from '#gapless/ring/lifecycle.js';
import type { Rings, StreamHandle } from '#gapless/ring/rings.js';

/** When all that a test does happens. */
export const NOW_MS = 1_700_000_000_000;

export interface RingStreamOptions {
  readonly epoch: string;
  /** Retention; 0 or absent: no such limit. */
  readonly events?: number;
  readonly bytes?: number;
  readonly dataBytesMax: number;
  /** Where a stream stands whose events are elsewhere; 0 or absent: it is new. */
  readonly head?: number;
}

/** Gives a slot to a stream in memory, as the coordinator does. */
export function openRingStream(rings: Rings, slot: number, options: RingStreamOptions): StreamHandle {
  const { epoch, events = 0, bytes = 0, dataBytesMax, head = 0 } = options;
  const stream = { epoch, retention: { events, bytes }, dataBytesMax, nowMs: NOW_MS };
  const logged = { floor: 1, head, closed: false };
  return openStream(rings, slot, head === 0 ? stream : { ...stream, logged });
}
