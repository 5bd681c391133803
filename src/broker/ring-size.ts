/** How large the ring of a stream may grow, by what the stream keeps. Pure. */

import type { Retention, StreamConfig } from '../core/retention.js';

export interface RingLimits {
  /** What one stream may take of the memory, bytes. */
  readonly streamBytesMax: number;
  /** Frames that a publish may need at once, bytes; a ring keeps room for them beside what retention keeps. */
  readonly publishBytesMax: number;
  /** What of a durable stream stays in memory at least, bytes; 0 in memory mode, where all of it does. */
  readonly ringBytes: number;
}

/** What the ring keeps: all that the stream does, or of a durable one the newest part. */
export function ringRetention({ retention }: StreamConfig, { ringBytes }: RingLimits): Retention {
  if (ringBytes === 0) return retention;
  const { bytes } = retention;
  return { ...retention, bytes: bytes === 0 ? ringBytes : Math.min(bytes, ringBytes) };
}

/**
 * How far a stream's ring may grow, bytes, a power of two: what it keeps at least and a publish beside it. Without a
 * limit by bytes it is all that one stream may take.
 */
export function ringBytesMax(config: StreamConfig, limits: RingLimits): number {
  const ceiling = powerOfTwoBelow(limits.streamBytesMax);
  const { bytes } = ringRetention(config, limits);
  if (bytes === 0) return ceiling;
  return Math.min(ceiling, 2 ** Math.ceil(Math.log2(bytes + limits.publishBytesMax)));
}

/**
 * The most that a stream can promise to keep, bytes: half of what its ring may hold. A durable one keeps it in the log.
 */
export function keptBytesMax({ ringBytes, streamBytesMax }: RingLimits): number {
  return ringBytes > 0 ? Number.MAX_SAFE_INTEGER : powerOfTwoBelow(streamBytesMax) / 2;
}

function powerOfTwoBelow(bytes: number): number {
  return 2 ** Math.floor(Math.log2(bytes));
}
