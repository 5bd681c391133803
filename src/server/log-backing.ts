/**
 * What a broker needs of a log that outlives it, whichever it is.
 */

import type { Directory } from '../broker/directory.js';
import type { Journal } from '../broker/journal.js';
import type { NamedSubscribers } from '../broker/named-subscribers.js';
import type { LogSources } from '../metrics/log-metrics.js';
import type { Questions } from './messages.js';

export interface LogBacking {
  /** How the log is doing, for edges and metrics; see log-status.ts. */
  readonly status: SharedArrayBuffer;
  readonly journal: Journal;
  /** Brings back what the log has. Once, before anybody is served. @throws what keeps it from being used. */
  restore(directory: Directory, named: NamedSubscribers): Promise<void>;
  /**
   * Reads a run for a reader that is below the ring. Null: the event after the cursor is gone.
   * @throws {RequestError} `log_unavailable`
   */
  replay(ask: Questions['replay']['ask']): Promise<Questions['replay']['answer']>;
  /** Resolves when the broker cannot go on. Once restored. */
  readonly failed: Promise<Error>;
  readonly metricsSources: LogSources;
  close(): Promise<void>;
}
