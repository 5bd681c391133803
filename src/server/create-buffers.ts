/**
 * The shared memory that all threads attach to, as the settings want it.
 */

import { isDurable } from '../config/relations.js';
import type { Config } from '../config/schema.js';
import { createCounters } from '../ring/counters.js';
import { createRings, type RingsBuffers } from '../ring/rings.js';
import { createTallies } from '../ring/tally.js';
import { createWakes } from '../ring/wake-queue.js';
import { producerLimits } from './bounds.js';

export interface SharedBuffers {
  readonly rings: RingsBuffers;
  readonly wakes: SharedArrayBuffer;
  readonly counters: SharedArrayBuffer;
  /** Of what is limited by key and by address. */
  readonly tallies: SharedArrayBuffer;
  /** Nobody outside knows it, so that no keys can be made up that meet in one tally. */
  readonly tallySeed: string;
}

export function createBuffers(config: Config, tallySeed: string): SharedBuffers {
  return {
    rings: createRings({
      streamsMax: config.streamsMax,
      memoryBytes: config.memory,
      durable: isDurable(config),
      producers: producerLimits(config),
    }),
    wakes: createWakes(config.threads, config.streamsMax, isDurable(config) ? 1 : 0),
    counters: createCounters(config.threads),
    tallies: createTallies(),
    tallySeed,
  };
}
