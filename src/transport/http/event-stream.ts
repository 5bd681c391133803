/** What event streams say of themselves in their headers. */

import type { Headers } from './exchange.js';

/** Nobody between may keep it, change it or hold it back. */
export const EVENT_STREAM_HEADERS: Headers = {
  'Content-Type': 'text/event-stream',
  'Cache-Control': 'no-store, no-transform',
  'X-Accel-Buffering': 'no',
};

/** A subscriber that comes back is to come on a connection of its own, and perhaps elsewhere. */
export const SUBSCRIPTION_HEADERS: Headers = { ...EVENT_STREAM_HEADERS, Connection: 'close' };
