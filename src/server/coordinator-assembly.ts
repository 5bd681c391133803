/**
 * Puts the coordinator together with what it answers from: the directory, the named subscribers, the cursors of
 * subscriptions by prefix, the metrics and what happened lately.
 */

import { randomBytes } from 'node:crypto';
import { ActivityFeed } from '../broker/activity-feed.js';
import type { Directory } from '../broker/directory.js';
import { NO_JOURNAL } from '../broker/journal.js';
import { NamedSubscribers } from '../broker/named-subscribers.js';
import { PrefixCursors } from '../broker/prefix-cursors.js';
import type { Config } from '../config/schema.js';
import { EPOCH_LENGTH, makeEpoch } from '../core/epoch.js';
import { FrontCounts } from '../mcp/front-counts.js';
import { Metrics } from '../metrics/metrics.js';
import { countersOfAll } from '../ring/counters.js';
import { holdFrom } from '../ring/lifecycle.js';
import type { Rings } from '../ring/rings.js';
import type { Wakes } from '../ring/wake-queue.js';
import { Coordinator } from './coordinator.js';
import type { SharedBuffers } from './create-buffers.js';
import { createDirectory } from './create-directory.js';
import type { EdgeThread } from './edge/edge-thread.js';
import type { KeySource } from './key-source.js';
import type { OpenedLog } from './open-log.js';
import type { AskEdges } from './stream-reports.js';

export interface CoordinatorAssemblyOptions {
  readonly config: Config;
  readonly buffers: SharedBuffers;
  readonly rings: Rings;
  readonly wakes: Wakes;
  /** Null: streams are kept in memory alone. */
  readonly log: OpenedLog | null;
  /** By their numbers; they start later, for they ask the coordinator. */
  readonly edges: readonly EdgeThread[];
  readonly keySource: KeySource | null;
  /** What the front of the MCP servers counts; null: there are none. */
  readonly mcpCounts: SharedArrayBuffer | null;
  /** Unix time, milliseconds. */
  readonly now: () => number;
}

export interface CoordinatorAssembly {
  readonly coordinator: Coordinator;
  readonly directory: Directory;
  readonly named: NamedSubscribers;
  /** Applies age, time to live, and how long cursors are kept. Call it a few times a second. */
  sweep(): void;
}

export function assembleCoordinator(options: CoordinatorAssemblyOptions): CoordinatorAssembly {
  const { config, buffers, rings, wakes, log, edges, keySource, mcpCounts, now } = options;
  const journal = log?.backing.journal ?? NO_JOURNAL;
  const directory = createDirectory({
    config,
    rings,
    wakes,
    journal,
    made: (ref) => prefixCursors.made(ref),
    removed: (epoch) => named.drop(epoch),
    now,
    // In a shared log the time to live is for `ReplicaRetention` to apply: others may use the stream.
    ...(log?.shared ? { expire: () => undefined } : {}),
    randomBytes,
  });
  const named = new NamedSubscribers({
    streams: directory,
    journal,
    subscribersMax: config.namedSubscribersMax,
    hold: log === null ? (ref, seq) => holdFrom(rings, ref, seq) : null,
  });
  const prefixCursors = new PrefixCursors({
    streams: (prefix) => directory.refs(prefix),
    cursorsMax: config.prefixCursorsMax,
    streamsMax: config.prefixStreamsMax,
    keepMs: config.prefixCursorMs,
    tellMade: (edge, ref) => edges[edge]?.tellMade(ref),
    release: ({ edge, id }) => edges[edge]?.releaseCursor(id),
    now,
    randomBytes,
  });
  const activity = new ActivityFeed(makeEpoch(randomBytes(EPOCH_LENGTH)));
  const askEdges: AskEdges = (topic, ask) => Promise.all(edges.map((edge) => edge.report(topic, ask)));
  const metrics = new Metrics({
    counters: countersOfAll(buffers.counters),
    arena: rings.arena,
    directory,
    named,
    prefixCursors,
    streamPatterns: config.metricsStreams,
    streamsTop: config.metricsStreamsTop,
    log: log?.backing.metricsSources ?? null,
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
    replay: async (ask) => log?.backing.replay(ask) ?? null,
    shared: log?.shared ?? null,
  });
  const sweep = (): void => {
    directory.sweep();
    named.sweep();
    prefixCursors.sweep();
  };
  return { coordinator, directory, named, sweep };
}
