import type { Counters } from '../ring/counters.js';
import type { LogStatus } from '../ring/log-status.js';
import type { Rings } from '../ring/rings.js';
import type { Wakes } from '../ring/wake-queue.js';
import type { DirectoryPort } from './edge-streams.js';
import type { OvertakenAt } from './refusal.js';
import type { ReplayPort } from './replay.js';
import type { Subscription } from './subscription.js';

/** What an edge's broker needs of the world. */
export interface EdgeBrokerOptions {
  readonly edge: number;
  readonly rings: Rings;
  readonly wakes: Wakes;
  readonly counters: Counters;
  readonly directory: DirectoryPort;
  readonly writeBytesMax: number;
  readonly pageBytesMax: number;
  readonly heartbeatIntervalMs: number;
  /** The durable log, where there is one. */
  readonly durable: {
    readonly status: LogStatus;
    readonly replay: ReplayPort;
    readonly replayCacheBytes: number;
  } | null;
  /** Told of a subscription that eviction has passed, before it is off the edge (contract 4.6). */
  readonly overtaken?: (subscription: Subscription, at: OvertakenAt) => void;
  /** Told of each subscription that is off the edge. */
  readonly left?: (subscription: Subscription) => void;
  /** Unix time, milliseconds. */
  readonly now: () => number;
  /** A number from 0 up to 1: spreads heartbeats. */
  readonly random: () => number;
  /** Runs the callback after the sockets that are ready now have been read. */
  readonly defer: (callback: () => void) => void;
}
