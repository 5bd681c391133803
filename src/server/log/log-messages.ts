/**
 * What the coordinator and the log thread say to each other.
 */

import type { Config } from '../../config/schema.js';
import type { StreamConfig } from '../../core/retention.js';
import type { RingsBuffers, StreamHandle } from '../../ring/rings.js';
import type { LoggedStream } from '../../storage/event-log.js';
import type { ClockOrigin } from '../steady-clock.js';

/** What the log thread is started with. */
export interface LogSetup {
  readonly config: Config;
  readonly directory: string;
  readonly rings: RingsBuffers;
  readonly wakes: SharedArrayBuffer;
  readonly status: SharedArrayBuffer;
  readonly clockOrigin: ClockOrigin;
}

/** From the coordinator. Those with an id are answered with `done` when they are committed. */
export type LogCommand =
  | { readonly kind: 'adopt'; readonly streams: readonly AdoptedStream[] }
  | {
      readonly kind: 'create';
      readonly id: number;
      readonly handle: StreamHandle;
      readonly stream: CreatedStream;
    }
  | {
      readonly kind: 'acknowledge';
      readonly id: number;
      readonly slot: number;
      readonly subscriber: string;
      /** Null: the subscriber is forgotten. */
      readonly cursor: string | null;
    }
  | { readonly kind: 'close'; readonly id: number; readonly slot: number }
  | { readonly kind: 'remove'; readonly id: number; readonly slot: number }
  | { readonly kind: 'stop' };

/** A stream that the log brought back, in the slot that it was given. */
export interface AdoptedStream {
  readonly handle: StreamHandle;
  readonly logId: number;
  readonly head: number;
  readonly ages: boolean;
  readonly rejects: boolean;
}

export interface CreatedStream {
  readonly name: string;
  readonly epoch: string;
  readonly config: StreamConfig;
}

/** From the log thread. */
export type LogMessage =
  | { readonly kind: 'loaded'; readonly streams: readonly LoggedStream[] }
  | { readonly kind: 'done'; readonly id: number; readonly logId: number | null }
  | { readonly kind: 'stopped' };
