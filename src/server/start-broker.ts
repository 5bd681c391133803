/**
 * Puts a broker together: the shared memory, the directory, the metrics and the edge threads.
 */

import { randomBytes } from 'node:crypto';
import { Directory } from '../broker/directory.js';
import type { Config } from '../config/schema.js';
import { Metrics } from '../metrics/metrics.js';
import { countersOfAll, createCounters } from '../ring/counters.js';
import { createRings, Rings } from '../ring/rings.js';
import { createWakes, Wakes } from '../ring/wake-queue.js';
import { frameBytesMax } from './bounds.js';
import { Coordinator } from './coordinator.js';
import { EdgeThread } from './edge-thread.js';
import { claimPort } from './free-port.js';

/** How often age and time to live are applied, milliseconds. */
const SWEEP_MS = 250;

export interface RunningBroker {
  readonly port: number;
  /** Sends subscribers away over the drain time, then closes everything. */
  drain(): Promise<void>;
  /** Closes everything now. */
  stop(): Promise<void>;
  /** Resolves if a thread dies; the broker is of no use any more. */
  readonly failed: Promise<Error>;
}

/** @throws an error whose `code` is that of the system when the address cannot be listened on. */
export async function startBroker(config: Config): Promise<RunningBroker> {
  const port = await claimPort(config.host, config.port);
  const buffers = {
    rings: createRings({ streamsMax: config.streamsMax, memoryBytes: config.memory }),
    wakes: createWakes(config.threads, config.streamsMax),
    counters: createCounters(config.threads),
  };
  const rings = new Rings(buffers.rings);
  const directory = createDirectory(config, rings, new Wakes(buffers.wakes, rings));
  const threads: EdgeThread[] = [];
  const metrics = new Metrics({
    counters: countersOfAll(buffers.counters),
    arena: rings.arena,
    directory,
    streamPatterns: config.metricsStreams,
    streamsTop: config.metricsStreamsTop,
    lags: async () => (await Promise.all(threads.map((thread) => thread.lags()))).flat(),
  });
  const coordinator = new Coordinator(directory, metrics);
  for (let edge = 0; edge < config.threads; edge++) {
    threads.push(new EdgeThread({ edge, config, ...buffers }, coordinator));
  }

  const failed = Promise.race(threads.map((thread) => thread.failed));
  const sweeping = setInterval(() => directory.sweep(), SWEEP_MS);
  const stop = async (): Promise<void> => {
    clearInterval(sweeping);
    await Promise.all(threads.map((thread) => thread.stop()));
  };
  try {
    await Promise.all(threads.map((thread) => thread.listen(port)));
  } catch (error) {
    await stop();
    throw error;
  }
  return {
    port,
    failed,
    stop,
    drain: async () => {
      await Promise.all(threads.map((thread) => thread.drain(config.drainMs)));
      await stop();
    },
  };
}

function createDirectory(config: Config, rings: Rings, wakes: Wakes): Directory {
  return new Directory({
    rings,
    wakes,
    defaults: {
      retention: {
        events: config.retentionEvents,
        bytes: config.retentionBytes,
        ageMs: config.retentionAgeMs,
      },
      overflow: config.overflow,
      ttlMs: config.ttlMs,
    },
    streamBytesMax: config.streamBytesMax,
    publishBytesMax: Math.min(frameBytesMax(config), config.bodyBytesMax),
    autoCreate: config.autoCreate,
    now: Date.now,
    randomBytes,
  });
}
