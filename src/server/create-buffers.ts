/**
 * The shared memory that all threads attach to, as the settings want it.
 */

import type { Config } from '../config/schema.js';
import { createCounters } from '../ring/counters.js';
import { createRings, type RingsBuffers } from '../ring/rings.js';
import { createWakes } from '../ring/wake-queue.js';
import { producerLimits } from './bounds.js';

export interface SharedBuffers {
  readonly rings: RingsBuffers;
  readonly wakes: SharedArrayBuffer;
  readonly counters: SharedArrayBuffer;
}

export function createBuffers(config: Config): SharedBuffers {
  const isDurable = config.dataDir !== null;
  return {
    rings: createRings({
      streamsMax: config.streamsMax,
      memoryBytes: config.memory,
      durable: isDurable,
      producers: producerLimits(config),
    }),
    wakes: createWakes(config.threads, config.streamsMax, isDurable ? 1 : 0),
    counters: createCounters(config.threads),
  };
}
