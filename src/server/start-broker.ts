/**
 * Starts a broker: what it opens, in its order, and how it is ended.
 */

import { randomBytes } from 'node:crypto';
import type { Config } from '../config/schema.js';
import type { Logger } from '../log.js';
import { createFrontCounts } from '../mcp/front-counts.js';
import { Rings } from '../ring/rings.js';
import { Wakes } from '../ring/wake-queue.js';
import { checkCertificate } from './certificate.js';
import { assembleCoordinator } from './coordinator-assembly.js';
import { createBuffers } from './create-buffers.js';
import { EdgeThread } from './edge/edge-thread.js';
import { KeySource } from './key-source.js';
import { McpThread } from './mcp/mcp-thread.js';
import { openLog } from './open-log.js';
import { Opened } from './opened.js';
import { claimPort, listenOnFreePort } from './port-claim.js';
import { clockOrigin, SteadyClock } from './steady-clock.js';
import { tallyDrain } from './tally-drain.js';

/** How often age and time to live are applied, milliseconds. */
const SWEEP_MS = 250;
const TALLY_SEED_BYTES = 16;

export interface RunningBroker {
  readonly port: number;
  /** Sends subscribers away over the drain time, then closes everything. */
  drain(): Promise<void>;
  /**
   * Reads again what may change while it runs, keys and certificate; null where nothing may.
   * @throws an error that says what is wrong; nothing has changed then.
   */
  readonly reload: (() => Promise<void>) | null;
  /** Closes everything now. */
  stop(): Promise<void>;
  /** Resolves if a thread dies; the broker is of no use any more. */
  readonly failed: Promise<Error>;
}

/**
 * @throws an error whose `code` is that of the system when the address cannot be listened on, and one that says what
 *   is wrong with the data directory, the shared log, the keys or the certificate.
 */
export async function startBroker(config: Config, logger: Logger): Promise<RunningBroker> {
  const opened = new Opened();
  try {
    return await start(config, logger, opened);
  } catch (error) {
    // The reason why the start failed is what is thrown, and not an error of closing what was opened.
    await opened.close().catch(() => undefined);
    throw error;
  }
}

async function start(config: Config, logger: Logger, opened: Opened): Promise<RunningBroker> {
  await checkCertificate(config);
  const edges: EdgeThread[] = [];
  const keySource = await KeySource.open(config, logger, (keys) => {
    for (const edge of edges) edge.useKeys(keys);
  });
  opened.add(() => keySource?.close());
  let claim = await claimPort(config.host, config.port);
  opened.add(() => claim.release());
  const origin = clockOrigin();
  const { now } = new SteadyClock(origin);
  const buffers = createBuffers(config, randomBytes(TALLY_SEED_BYTES).toString('hex'));
  const rings = new Rings(buffers.rings);
  const memory = { buffers, rings, wakes: new Wakes(buffers.wakes, rings) };
  const log = await openLog({ config, ...memory, logger, clockOrigin: origin, nowMs: now });
  opened.add(() => log?.backing.close());
  const mcpCounts = config.mcp.length === 0 ? null : createFrontCounts();
  const { coordinator, directory, named, sweep } = assembleCoordinator({
    ...{ config, ...memory, log, edges, keySource, mcpCounts, now },
  });
  const drainTallies = tallyDrain(config, buffers.tallies);
  const sweeping = setInterval(() => {
    sweep();
    drainTallies(SWEEP_MS);
  }, SWEEP_MS);
  opened.add(() => clearInterval(sweeping));
  await log?.backing.restore(directory, named);
  const setup = { config, logStatus: log?.backing.status ?? null, clockOrigin: origin, ...buffers };
  const eventBytesMax = log?.shared?.eventBytesMax ?? null;
  const mcp = mcpCounts && new McpThread({ ...setup, eventBytesMax, counts: mcpCounts }, coordinator);
  opened.add(() => mcp?.stop());
  opened.add(() => Promise.all(edges.map((edge) => edge.stop())));
  for (let edge = 0; edge < config.threads; edge++) {
    const keys = keySource?.keys ?? null;
    edges.push(new EdgeThread({ ...setup, edge, keys, mcp: mcp?.edgePorts[edge] ?? null }, coordinator));
  }
  if (config.port === 0) claim = await listenOnFreePort(config.host, (port) => listen(edges, port));
  else await listen(edges, config.port);
  const mayFail = [...edges, log?.backing, mcp].filter((part) => part !== null && part !== undefined);
  return {
    port: claim.port,
    failed: Promise.race(mayFail.map((part) => part.failed)),
    stop: () => opened.close(),
    reload: keySource === null && config.tlsCertFile === null ? null : () => reload(config, keySource, edges),
    drain: async () => {
      await Promise.all(edges.map((edge) => edge.drain(config.drainMs)));
      await opened.close();
    },
  };
}

/** All is checked before anything changes, so that both keys and certificate change or neither does. */
async function reload(
  config: Config,
  keySource: KeySource | null,
  edges: readonly EdgeThread[],
): Promise<void> {
  await checkCertificate(config);
  await keySource?.reload();
  for (const edge of edges) edge.renewCertificate();
}

/** Waits for every edge, so that none is in the midst of it when they are told to listen elsewhere. */
async function listen(edges: readonly EdgeThread[], port: number): Promise<void> {
  const outcomes = await Promise.allSettled(edges.map((edge) => edge.listen(port)));
  for (const outcome of outcomes) if (outcome.status === 'rejected') throw outcome.reason;
}
