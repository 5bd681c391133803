/**
 * Puts an edge together from what its thread was started with: the broker of this edge, and what its routes work with.
 * Sockets, clocks, chance and the loop are handed in.
 */

import { Authenticator } from '../../auth/authenticator.js';
import type { KeyMaterial } from '../../auth/key-material.js';
import { ANYBODY } from '../../auth/principal.js';
import { EdgeBroker } from '../../broker/edge-broker.js';
import type { EdgeBrokerOptions } from '../../broker/edge-broker-options.js';
import { overtakenRefusal } from '../../broker/refusal.js';
import type { Subscription } from '../../broker/subscription.js';
import type { Config } from '../../config/schema.js';
import type { ConsoleAssets } from '../../console/assets.js';
import { FrameBatch } from '../../core/sse-frame.js';
import type { Logger } from '../../log.js';
import { Counter, Counters, countersOfAll } from '../../ring/counters.js';
import { LogStatus } from '../../ring/log-status.js';
import { Rings, type StreamHandle } from '../../ring/rings.js';
import { Wakes } from '../../ring/wake-queue.js';
import { Access } from '../../transport/admission/access.js';
import { ClientAddress } from '../../transport/admission/client-address.js';
import { Cors } from '../../transport/admission/cors.js';
import { HostNames } from '../../transport/admission/host-names.js';
import { Limits } from '../../transport/admission/limits.js';
import { RefusalLog } from '../../transport/admission/refusal-log.js';
import { Sessions } from '../../transport/admission/sessions.js';
import { Activity } from '../../transport/console/activity.js';
import type { EdgeServices } from '../../transport/edge-services.js';
import { retryAfterSeconds } from '../../transport/http/retry.js';
import type { McpFront } from '../../transport/mcp/mcp-front.js';
import { McpReaders } from '../../transport/mcp/mcp-readers.js';
import { PrefixFollowers } from '../../transport/subscribe/prefix-followers.js';
import { connectionBounds, frameBytesMax } from '../bounds.js';
import type { EdgeSetup } from '../messages.js';
import type { EdgeLink } from './edge-link.js';

export interface EdgeParts extends Pick<EdgeBrokerOptions, 'now' | 'random' | 'defer'> {
  readonly setup: EdgeSetup;
  /** The way to the coordinator. */
  readonly link: EdgeLink;
  /** The way to the front of the MCP servers; null: there are none. */
  readonly mcp: McpFront | null;
  readonly log: Logger;
  readonly console: ConsoleAssets | null;
}

export function assembleEdge(parts: EdgeParts): EdgeServices {
  const { setup, link, log, now, random } = parts;
  const { config, edge } = setup;
  const counters = new Counters(setup.counters, edge);
  const allCounters = countersOfAll(setup.counters);
  const sum = (counter: number): number =>
    allCounters.reduce((total, block) => total + block.get(counter), 0);
  const limits = new Limits({
    config,
    tallies: setup.tallies,
    seed: setup.tallySeed,
    counters,
    subscribers: () => sum(Counter.subscribers),
    retryAfter: () => retryAfterSeconds({ config, random }),
  });
  const sessions: Sessions = new Sessions({
    limits,
    unsubscribe: (subscription) => broker.unsubscribe(subscription),
  });
  const activity = new Activity(now);
  const refusals = new RefusalLog(log, now, Math.floor(random() * 2 ** 40).toString(36), activity);
  const mcpReaders =
    parts.mcp === null
      ? null
      : new McpReaders({
          front: parts.mcp,
          unsubscribe: (subscription) => broker.unsubscribe(subscription),
        });
  const left = (subscription: Subscription): void => {
    sessions.left(subscription);
    mcpReaders?.left(subscription);
  };
  const broker = assembleBroker(parts, { counters, sessions, activity, refusals, mcp: mcpReaders, left });
  return {
    broker,
    coordinator: askBy(link, edge),
    config,
    counters,
    access: new Access({
      authenticator: setup.keys === null ? null : createAuthenticator(config, setup.keys, link, now),
      hosts: new HostNames(setup.keys === null && !config.insecure ? config.hostNames : null),
      tokenInQuery: config.tokenInQuery,
      counters,
    }),
    sessions,
    followers: new PrefixFollowers(),
    mcp: mcpReaders,
    limits,
    refusals,
    activity,
    console: parts.console,
    clientAddress: new ClientAddress(config.trustedProxies),
    cors: new Cors(config.corsOrigins),
    log,
    batch: new FrameBatch(frameBytesMax(config)),
    now,
    random,
    connections: {
      open: () => sum(Counter.connections),
      inUse: () => sum(Counter.connectionsInUse),
      ...connectionBounds(config),
    },
    draining: false,
    sharesLog: config.log.length > 0,
    sharedPublishes: 0,
  };
}

/** What routes ask the coordinator, as messages to its thread. */
function askBy(link: EdgeLink, edge: number): EdgeServices['coordinator'] {
  return {
    put: (name, json) => link.ask('put', { name, config: json }),
    close: (name) => link.ask('close', { name }),
    remove: (name) => link.ask('remove', { name }),
    publish: (name, publish) => link.askToPublish({ name, publish }),
    refresh: (name, sought) => link.ask('refresh', { name, sought }),
    join: (name, subscriber, start) => link.ask('join', { name, subscriber, start }),
    acknowledge: (name, subscriber, cursor) => link.ask('acknowledge', { name, subscriber, cursor }),
    forget: (name, subscriber) => link.ask('forget', { name, subscriber }),
    follow: (follow) => link.ask('follow', { ...follow, edge }),
    handBack: (back) => link.send({ kind: 'handBack', back: { ...back, edge } }),
    state: (name) => link.ask('state', { name }),
    list: (options) => link.ask('list', options),
    readers: (name, countMax) => link.ask('readers', { name, countMax }),
    activity: (after, limit) => link.ask('activity', { after, limit }),
    metrics: () => link.ask('metrics', {}),
  };
}

function createAuthenticator(
  config: Config,
  keys: KeyMaterial,
  link: EdgeLink,
  now: () => number,
): Authenticator {
  return new Authenticator({
    keys,
    rules: { issuer: config.jwtIssuer, audience: config.jwtAudience },
    now,
    refresh: () => link.ask('unknownKey', {}),
  });
}

interface BrokerParts extends Pick<EdgeServices, 'counters' | 'sessions' | 'activity' | 'refusals' | 'mcp'> {
  readonly left: (subscription: Subscription) => void;
}

function assembleBroker(
  { setup, link, now, random, defer }: EdgeParts,
  { counters, sessions, activity, refusals, mcp, left }: BrokerParts,
): EdgeBroker {
  const { config, edge } = setup;
  const rings = new Rings(setup.rings);
  return new EdgeBroker({
    edge,
    rings,
    wakes: new Wakes(setup.wakes, rings),
    counters,
    directory: { resolve: (name, create) => link.ask('resolve', { name, create }) },
    writeBytesMax: config.writeBytesMax,
    pageBytesMax: config.pageBytesMax,
    heartbeatIntervalMs: config.heartbeatIntervalMs,
    durable:
      setup.logStatus === null
        ? null
        : {
            status: new LogStatus(setup.logStatus),
            replay: {
              read: (stream, afterSeq, bytesMax) =>
                link.ask('replay', { stream: handleOf(stream), afterSeq, bytesMax }),
            },
            replayCacheBytes: config.replayCacheBytes,
          },
    overtaken: (subscription, at) => {
      const principal = sessions.principalOf(subscription);
      activity.overtaken(subscription, at, principal);
      mcp?.overtaken(subscription);
      const { name, epoch } = subscription.stream;
      const refused = { principal: principal ?? ANYBODY, stream: name };
      refusals.noteOvertaken(refused, overtakenRefusal(epoch, subscription.cursor, at));
    },
    left,
    now,
    random,
    defer,
  });
}

/** A stream as it can be sent to another thread. */
function handleOf({ slot, generation, epoch }: StreamHandle): StreamHandle {
  return { slot, generation, epoch };
}
