/** What a session is made of. */

import type { EventIds } from '../event-id.js';
import type { FrontCounts } from '../front-counts.js';
import { type RpcError, SESSION_ENDED } from '../json-rpc.js';
import type { Backlog } from '../stream/backlog.js';
import type { McpStreams } from '../stream/mcp-streams.js';
import type { Upstream } from '../upstream/upstream.js';
import type { Session } from './session.js';
import type { SessionRecords } from './session-record.js';

/** `sse` is the one of 2024-11-05, where all that a session says comes on its own stream. */
export type Transport = 'streamable' | 'sse';

/** How calls end that a session leaves behind. */
export const ENDED: RpcError = {
  code: SESSION_ENDED,
  message: 'The session ended before the call was answered',
  data: { reason: 'session_ended' },
};

export interface SessionOptions {
  readonly id: string;
  readonly mount: number;
  /** Of the mount. */
  readonly path: string;
  readonly principal: string;
  readonly transport: Transport;
  readonly upstream: Upstream;
  /** Where it is kept; null: it ends with the process. */
  readonly records: SessionRecords | null;
  readonly streams: McpStreams;
  readonly backlog: Backlog;
  readonly ids: EventIds;
  /** Calls under way at a time, and streams of answered ones that are kept. */
  readonly callsMax: number;
  readonly counts: FrontCounts;
  /** Told of calls that the front has to answer itself. */
  readonly failed: (session: Session, error: RpcError) => void;
}
