/**
 * What the routes of one edge work with.
 */

import type { ActivityPage } from '../broker/activity-feed.js';
import type { StreamState } from '../broker/directory.js';
import type { EdgeBroker } from '../broker/edge-broker.js';
import type { StreamRef } from '../broker/edge-stream.js';
import type { StreamLags } from '../broker/lag.js';
import type { NamedSubscriber } from '../broker/named-subscribers.js';
import type { Follow, Followed, HandBack, NotFollowed } from '../broker/prefix-cursors.js';
import type { Readers } from '../broker/readers.js';
import type { Placed, Publish } from '../broker/replicated-publish.js';
import type { Config } from '../config/schema.js';
import type { ConsoleAssets } from '../console/assets.js';
import type { Cursor } from '../core/cursor.js';
import type { Start } from '../core/resume.js';
import type { FrameBatch } from '../core/sse-frame.js';
import type { Logger } from '../log.js';
import type { Counters } from '../ring/counters.js';
import type { Access } from './admission/access.js';
import type { ClientAddress } from './admission/client-address.js';
import type { Cors } from './admission/cors.js';
import type { Limits } from './admission/limits.js';
import type { RefusalLog } from './admission/refusal-log.js';
import type { Sessions } from './admission/sessions.js';
import type { Activity } from './console/activity.js';
import type { McpReaders } from './mcp/mcp-readers.js';
import type { PrefixFollowers } from './subscribe/prefix-followers.js';

/** A stream in a list; with how far its readers are behind, where that was asked for. */
export interface ListedStream extends StreamState {
  readonly lags: StreamLags | null;
}

/** A stream with everybody who reads it. */
export interface ReadStream extends StreamState, Readers {
  readonly named: readonly NamedSubscriber[];
  /** Whether all edges have said who reads there. */
  readonly isWhole: boolean;
}

/** The coordinator's side of the API, asked over a message port. */
export interface Coordinator {
  put(name: string, config: unknown): Promise<{ ref: StreamRef; created: boolean }>;
  close(name: string): Promise<StreamRef | null>;
  remove(name: string): Promise<boolean>;
  /** Appends to a log that brokers share. */
  publish(name: string, publish: Publish): Promise<Placed>;
  /**
   * Resolves when this broker has what others wrote of a stream, up to now.
   * @param sought where somebody says that it is: if it is not there, that is certain. Null: whatever it has is.
   */
  refresh(name: string, sought: Cursor | null): Promise<void>;
  /** Where a named subscriber begins; null: there is no such stream. */
  join(name: string, subscriber: string, start: Start): Promise<{ start: Start } | null>;
  /** What a named subscriber is known to have now; null: there is no such stream. */
  acknowledge(name: string, subscriber: string, cursor: Cursor): Promise<string | null>;
  forget(name: string, subscriber: string): Promise<boolean>;
  /** The cursor of a subscription by prefix, and the streams that it is of. */
  follow(follow: Omit<Follow, 'edge'>): Promise<Followed | NotFollowed>;
  /** Gives the cursor back that `follow` gave. */
  handBack(back: Omit<HandBack, 'edge'>): void;
  state(name: string): Promise<(StreamState & { readonly named: NamedSubscriber[] }) | null>;
  list(options: {
    prefix: string;
    after: string;
    limit: number;
    lag: boolean;
  }): Promise<readonly ListedStream[]>;
  /** Null: there is no such stream. */
  readers(name: string, countMax: number): Promise<ReadStream | null>;
  activity(after: Cursor | null, limit: number): Promise<ActivityPage>;
  metrics(): Promise<{ contentType: string; text: string }>;
}

export interface EdgeServices {
  readonly broker: EdgeBroker;
  readonly coordinator: Coordinator;
  readonly config: Config;
  readonly counters: Counters;
  readonly access: Access;
  readonly sessions: Sessions;
  readonly followers: PrefixFollowers;
  /** Null: no MCP servers. */
  readonly mcp: McpReaders | null;
  readonly limits: Limits;
  readonly refusals: RefusalLog;
  readonly activity: Activity;
  /** Null: it is not served. */
  readonly console: ConsoleAssets | null;
  readonly clientAddress: ClientAddress;
  readonly cors: Cors;
  readonly log: Logger;
  /** Frames of the publish at hand; reused, for a publish is decoded and appended without a pause. */
  readonly batch: FrameBatch;
  /** Unix time, milliseconds. */
  readonly now: () => number;
  /** A number from 0 up to 1, for jitter. */
  readonly random: () => number;
  /** Connections over all edges, those that are in use, and how many of each there may be. */
  readonly connections: {
    open(): number;
    readonly openMax: number;
    inUse(): number;
    readonly inUseMax: number;
  };
  /** Set while the broker goes down (contract 10). */
  draining: boolean;
  /** Whether the log is shared with other brokers: nothing is appended here, but through the coordinator. */
  readonly sharesLog: boolean;
  /** Publishes on their way into a shared log. */
  sharedPublishes: number;
}
