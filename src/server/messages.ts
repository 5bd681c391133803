/**
 * What the coordinator and the edges say to each other. Cold path: nothing here is sent per event.
 */

import type { MessagePort } from 'node:worker_threads';
import type { KeyMaterial } from '../auth/key-material.js';
import type { ActivityBatch, ActivityPage } from '../broker/activity-feed.js';
import type { StreamState } from '../broker/directory.js';
import type { StreamRef } from '../broker/edge-stream.js';
import type { NamedSubscriber } from '../broker/named-subscribers.js';
import type { Follow, Followed, HandBack, NotFollowed } from '../broker/prefix-cursors.js';
import type { Placed, Publish } from '../broker/replicated-publish.js';
import type { ReplayRun } from '../broker/shared-run.js';
import type { Config } from '../config/schema.js';
import type { Cursor } from '../core/cursor.js';
import type { Start } from '../core/resume.js';
import type { ErrorCode } from '../errors.js';
import type { LeftStream } from '../mcp/stream/mcp-streams.js';
import type { RingsBuffers, StreamHandle } from '../ring/rings.js';
import type { ListedStream, ReadStream } from '../transport/edge-services.js';
import type { Reports, ReportTopic } from './edge/edge-report.js';
import type { ClockOrigin } from './steady-clock.js';

/** What an edge thread is started with. */
export interface EdgeSetup {
  readonly edge: number;
  readonly config: Config;
  readonly rings: RingsBuffers;
  readonly wakes: SharedArrayBuffer;
  readonly counters: SharedArrayBuffer;
  /** How the durable log is doing; null without one. */
  readonly logStatus: SharedArrayBuffer | null;
  readonly clockOrigin: ClockOrigin;
  /** Sums over callers, of all edges; see tally.ts. */
  readonly tallies: SharedArrayBuffer;
  /** Random: keeps strangers from choosing where they are counted. */
  readonly tallySeed: string;
  /** Null: nobody has to authenticate. */
  readonly keys: KeyMaterial | null;
  /** The line to the front of the MCP servers; null: there are none. */
  readonly mcp: MessagePort | null;
}

/** Questions of an edge, and what the answer to each is. */
export interface Questions {
  resolve: { ask: { name: string; create: boolean }; answer: StreamRef | null };
  put: { ask: { name: string; config: unknown }; answer: { ref: StreamRef; created: boolean } };
  close: { ask: { name: string }; answer: StreamRef | null };
  remove: { ask: { name: string }; answer: boolean };
  /** The broker's own streams, many at a time. */
  putAll: { ask: { names: readonly string[]; config: unknown }; answer: StreamRef[] };
  removeAll: { ask: { names: readonly string[] }; answer: void };
  /** The broker's own streams, as they are. */
  ownStreams: { ask: Record<string, never>; answer: readonly LeftStream[] };
  join: { ask: { name: string; subscriber: string; start: Start }; answer: { start: Start } | null };
  acknowledge: { ask: { name: string; subscriber: string; cursor: Cursor }; answer: string | null };
  forget: { ask: { name: string; subscriber: string }; answer: boolean };
  /** The cursor of a subscription by prefix, and the streams that it is of. */
  follow: { ask: Follow; answer: Followed | NotFollowed };
  state: { ask: { name: string }; answer: (StreamState & { named: NamedSubscriber[] }) | null };
  list: {
    ask: { prefix: string; after: string; limit: number; lag: boolean };
    answer: readonly ListedStream[];
  };
  readers: { ask: { name: string; countMax: number }; answer: ReadStream | null };
  activity: { ask: { after: Cursor | null; limit: number }; answer: ActivityPage };
  /** To a log that is shared; others are appended to by edges themselves. */
  publish: { ask: { name: string; publish: Publish }; answer: Placed };
  /** Takes up what other brokers have written of a stream, where the log is shared. */
  refresh: { ask: { name: string; sought: Cursor | null }; answer: void };
  replay: { ask: { stream: StreamHandle; afterSeq: number; bytesMax: number }; answer: ReplayRun | null };
  /** A token names a key that is not here. Answered when the edge was sent what could be found. */
  unknownKey: { ask: Record<string, never>; answer: void };
  metrics: { ask: Record<string, never>; answer: { contentType: string; text: string } };
}

export type Topic = keyof Questions;

export interface Question<T extends Topic = Topic> {
  readonly kind: 'question';
  readonly id: number;
  readonly topic: T;
  readonly ask: Questions[T]['ask'];
}

export interface Answer {
  readonly kind: 'answer';
  readonly id: number;
  readonly value?: unknown;
  readonly error?: {
    readonly code: ErrorCode;
    readonly detail: string | undefined;
    readonly extra: Readonly<Record<string, unknown>>;
    readonly headers: Readonly<Record<string, string>>;
  };
}

/** From the coordinator. */
export type EdgeCommand =
  | Answer
  /** To publishes, all that have come to an end at once. */
  | { readonly kind: 'answers'; readonly answers: readonly Answer[] }
  | { readonly kind: 'listen'; readonly port: number }
  | {
      readonly kind: 'report';
      readonly id: number;
      readonly topic: ReportTopic;
      readonly ask: Reports[ReportTopic]['ask'];
    }
  /** A stream was made that a subscription by prefix may be of. */
  | { readonly kind: 'streamMade'; readonly ref: StreamRef }
  /** Ends a subscription by prefix, whose cursor somebody else takes. */
  | { readonly kind: 'releaseCursor'; readonly holder: number }
  | { readonly kind: 'renewCertificate' }
  | { readonly kind: 'keys'; readonly keys: KeyMaterial }
  | { readonly kind: 'drain'; readonly drainMs: number }
  | { readonly kind: 'stop' };

/** From an edge. */
export type EdgeMessage =
  | Question
  /** Where the log is shared: all of one turn of the loop. */
  | { readonly kind: 'publishes'; readonly questions: readonly Question<'publish'>[] }
  | { readonly kind: 'listening' }
  | { readonly kind: 'listenFailed' }
  | { readonly kind: 'report'; readonly id: number; readonly report: Reports[ReportTopic]['report'] }
  | { readonly kind: 'activity'; readonly batch: ActivityBatch }
  | { readonly kind: 'handBack'; readonly back: HandBack }
  | { readonly kind: 'drained' }
  | { readonly kind: 'stopped' }
  | { readonly kind: 'failed'; readonly message: string; readonly stack: string | undefined };
