/**
 * Where the directory writes down what has to outlive the process: streams that come, end and go.
 */

import type { StreamRef } from './edge-stream.js';

export interface Journal {
  /** A stream was created; nobody may be told of it before `settled`. */
  created(ref: StreamRef): void;
  /** A stream was closed: its readers hear of it when the log has all of it. */
  closed(ref: StreamRef): void;
  removed(ref: StreamRef): void;
  /** What a named subscriber has; null: it is forgotten. */
  acknowledged(ref: StreamRef, subscriber: string, cursor: string | null): void;
  /** Whether it is durable that the stream was created: until then nobody may be told of it. */
  hasCreated(ref: StreamRef): boolean;
  /**
   * Resolves when all that was written down about streams of this name is durable.
   * @throws {RequestError} `log_full` or `log_unavailable`, when that may take for ever
   */
  settled(name: string): Promise<void> | void;
}

/** In memory nothing outlives the process. */
export const NO_JOURNAL: Journal = {
  created: () => undefined,
  closed: () => undefined,
  removed: () => undefined,
  acknowledged: () => undefined,
  hasCreated: () => true,
  settled: () => undefined,
};
