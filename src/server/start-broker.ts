/**
 * Puts a broker together: the shared memory, the directory, the metrics and the edge threads.
 */

import { randomBytes } from 'node:crypto';
import { ActivityFeed } from '../broker/activity-feed.js';
import { NO_JOURNAL } from '../broker/journal.js';
import { NamedSubscribers } from '../broker/named-subscribers.js';
import { PrefixCursors } from '../broker/prefix-cursors.js';
import type { Config } from '../config/schema.js';
import { EPOCH_LENGTH, makeEpoch } from '../core/epoch.js';
import type { Logger } from '../log.js';
import { createFrontCounts, FrontCounts } from '../mcp/front-counts.js';
import { Metrics } from '../metrics/metrics.js';
import { countersOfAll } from '../ring/counters.js';
import { holdFrom } from '../ring/lifecycle.js';
import { Rings } from '../ring/rings.js';
import { Wakes } from '../ring/wake-queue.js';
import { checkCertificate } from './certificate.js';
import { Coordinator } from './coordinator.js';
import { createBuffers } from './create-buffers.js';
import { createDirectory } from './create-directory.js';
import { EdgeThread } from './edge/edge-thread.js';
import { KeySource } from './key-source.js';
import type { Durability, DurabilityOptions } from './log/durability.js';
import type { LogBacking } from './log-backing.js';
import { McpThread } from './mcp/mcp-thread.js';
import { Opened } from './opened.js';
import { claimPort, listenOnFreePort } from './port-claim.js';
import type { ReplicatedBroker, ReplicatedOptions } from './replica/replicated-broker.js';
import { clockOrigin, SteadyClock } from './steady-clock.js';
import type { AskEdges } from './stream-reports.js';
import { tallyDrain } from './tally-drain.js';

/** How often age and time to live are applied, milliseconds. */
const SWEEP_MS = 250;

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
 *   is wrong with the data directory.
 */
export async function startBroker(config: Config, logger: Logger): Promise<RunningBroker> {
  const opened = new Opened();
  try {
    return await start(config, logger, opened);
  } catch (error) {
    // What is wrong with the start is said, and not what comes of it.
    await opened.close().catch(() => undefined);
    throw error;
  }
}

async function start(config: Config, logger: Logger, opened: Opened): Promise<RunningBroker> {
  await checkCertificate(config);
  const threads: EdgeThread[] = [];
  const keySource = await KeySource.open(config, logger, (keys) => {
    for (const thread of threads) thread.useKeys(keys);
  });
  opened.add(() => keySource?.close());
  let claim = await claimPort(config.host, config.port);
  opened.add(() => claim.release());
  const origin = clockOrigin();
  const buffers = createBuffers(config, randomBytes(16).toString('hex'));
  const rings = new Rings(buffers.rings);
  const wakes = new Wakes(buffers.wakes, rings);
  const clock = new SteadyClock(origin);
  const embedded =
    config.dataDir === null
      ? null
      : await openDurability(config.dataDir, {
          config,
          rings,
          buffers: buffers.rings,
          wakes: buffers.wakes,
          logger,
          clockOrigin: origin,
        });
  const shared =
    config.log.length === 0
      ? null
      : await openReplicated({
          config,
          rings,
          wakes,
          logger,
          nowMs: clock.now,
          random: Math.random,
          randomBytes,
        });
  const durability: LogBacking | null = embedded ?? shared;
  opened.add(() => durability?.close());
  const journal = durability?.journal ?? NO_JOURNAL;
  const directory = createDirectory({
    config,
    rings,
    wakes,
    journal,
    made: (ref) => prefixCursors.made(ref),
    removed: (epoch) => named.drop(epoch),
    now: clock.now,
    // A shared log is asked by `ReplicaRetention`: others may use the stream.
    ...(shared !== null ? { expire: () => undefined } : {}),
    randomBytes,
  });
  const named = new NamedSubscribers({
    streams: directory,
    journal,
    subscribersMax: config.namedSubscribersMax,
    hold: durability === null ? (ref, seq) => holdFrom(rings, ref, seq) : null,
  });
  const prefixCursors = new PrefixCursors({
    streams: (prefix) => directory.refs(prefix),
    cursorsMax: config.prefixCursorsMax,
    streamsMax: config.prefixStreamsMax,
    keepMs: config.prefixCursorMs,
    tellMade: (edge, ref) => threads[edge]?.tellMade(ref),
    release: ({ edge, id }) => threads[edge]?.releaseCursor(id),
    now: clock.now,
    randomBytes,
  });
  const activity = new ActivityFeed(makeEpoch(randomBytes(EPOCH_LENGTH)));
  const askEdges: AskEdges = (topic, ask) => Promise.all(threads.map((thread) => thread.report(topic, ask)));
  const mcpCounts = config.mcp.length === 0 ? null : createFrontCounts();
  const metrics = new Metrics({
    counters: countersOfAll(buffers.counters),
    arena: rings.arena,
    directory,
    named,
    prefixCursors,
    streamPatterns: config.metricsStreams,
    streamsTop: config.metricsStreamsTop,
    log: durability?.metricsSources ?? null,
    mcp: mcpCounts === null ? null : new FrontCounts(mcpCounts),
    lags: async () => (await askEdges('lags', { names: null })).flatMap((lags) => lags ?? []),
    activity,
  });
  const coordinator = new Coordinator({
    directory,
    named,
    prefixCursors,
    journal,
    metrics,
    activity,
    askEdges,
    unknownKey: async () => keySource?.unknownKey(),
    replay: async (ask) => durability?.replay(ask) ?? null,
    shared,
  });
  const drainTallies = tallyDrain(config, buffers.tallies);
  const sweeping = setInterval(() => {
    directory.sweep();
    named.sweep();
    prefixCursors.sweep();
    drainTallies(SWEEP_MS);
  }, SWEEP_MS);
  opened.add(() => clearInterval(sweeping));
  await durability?.restore(directory, named);
  const logStatus = durability?.status ?? null;
  const setup = { config, logStatus, clockOrigin: origin, ...buffers };
  const eventBytesMax = shared?.eventBytesMax ?? null;
  const mcp = mcpCounts && new McpThread({ ...setup, eventBytesMax, counts: mcpCounts }, coordinator);
  opened.add(() => mcp?.stop());
  opened.add(() => Promise.all(threads.map((thread) => thread.stop())));
  for (let edge = 0; edge < config.threads; edge++) {
    const keys = keySource?.keys ?? null;
    threads.push(new EdgeThread({ ...setup, edge, keys, mcp: mcp?.edgePorts[edge] ?? null }, coordinator));
  }
  if (config.port === 0) claim = await listenOnFreePort(config.host, (port) => listen(threads, port));
  else await listen(threads, config.port);
  const reload = async (): Promise<void> => {
    // Checked first, so that both change or none.
    await checkCertificate(config);
    await keySource?.reload();
    for (const thread of threads) thread.renewCertificate();
  };
  const parts = [...threads, durability, mcp].filter((part) => part !== null);
  return {
    port: claim.port,
    failed: Promise.race(parts.map((part) => part.failed)),
    stop: () => opened.close(),
    reload: keySource === null && config.tlsCertFile === null ? null : reload,
    drain: async () => {
      await Promise.all(threads.map((thread) => thread.drain(config.drainMs)));
      await opened.close();
    },
  };
}

/** Waits for every edge, so that none is in the midst of it when they are told to listen elsewhere. */
async function listen(edges: readonly EdgeThread[], port: number): Promise<void> {
  const outcomes = await Promise.allSettled(edges.map((edge) => edge.listen(port)));
  for (const outcome of outcomes) if (outcome.status === 'rejected') throw outcome.reason;
}

/** What keeps a log is loaded where there is one: its libraries are a good part of what a start costs. */
async function openDurability(directory: string, options: DurabilityOptions): Promise<Durability> {
  const { Durability } = await import('./log/durability.js');
  return Durability.open(directory, options);
}

async function openReplicated(options: ReplicatedOptions): Promise<ReplicatedBroker> {
  const { ReplicatedBroker } = await import('./replica/replicated-broker.js');
  return ReplicatedBroker.open(options);
}
