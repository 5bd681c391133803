/**
 * Bounds that follow from the settings and from the system, with their reasons.
 */

import { readFileSync } from 'node:fs';
import type { Config } from '../config/schema.js';
import type { ProducerLimits } from '../ring/rings.js';

/** Descriptors that are not connections: files, pipes, the loop's own. */
const RESERVED_DESCRIPTORS = 64;
/** Connections kept free beside those in use: for operators, and to refuse others with an answer. */
const RESERVED_CONNECTIONS = 64;

/** The worst a body becomes when it is framed: each of its bytes a line break, and each line a `data: ` field. */
const FRAME_EXPANSION_MAX = 8;

/** How many connections may be open, by the descriptors of the process, and how many of them in use. */
export function connectionBounds(config: Config): { openMax: number; inUseMax: number } {
  const openMax = (descriptorLimit() ?? Number.POSITIVE_INFINITY) - RESERVED_DESCRIPTORS;
  const possible = openMax - RESERVED_CONNECTIONS;
  const inUseMax = config.connectionsMax === 0 ? possible : Math.min(config.connectionsMax, possible);
  return { openMax, inUseMax };
}

/** Bytes of frames that one publish may become. */
export function frameBytesMax(config: Config): number {
  return config.bodyBytesMax * FRAME_EXPANSION_MAX + config.batchEventsMax * FRAME_EXPANSION_MAX;
}

/** How many producers and keys are remembered, and how long. */
export function producerLimits(config: Config): ProducerLimits {
  return {
    countMax: [config.producersMax, config.idempotencyKeysMax],
    ttlMs: [config.producerTtlMs, config.idempotencyTtlMs],
    bytesMax: config.producerBytesMax,
  };
}

/** The soft limit of open files, where the system says. */
function descriptorLimit(): number | null {
  try {
    const limits = readFileSync('/proc/self/limits', 'utf8');
    const match = /^Max open files\s+(\d+)/m.exec(limits);
    return match === null ? null : Number(match[1]);
  } catch {
    return null;
  }
}
