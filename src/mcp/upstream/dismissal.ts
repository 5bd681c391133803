import type { MessageSink, Upstream } from './upstream.js';

/** How long a server may take to answer what was cancelled, milliseconds. */
const CANCELLED_MS = 1000;

/** A sink of calls that may be cancelled. */
export interface CancellableSink extends MessageSink {
  /** Ends it if nobody waits for an answer. @returns whether it was under way. */
  dismiss(): boolean;
}

/**
 * A call was cancelled: a server need not answer it, and may keep it open for ever. It is let go of, and so is what the
 * server would say about it.
 */
export function dismissLater(upstream: Upstream, sink: CancellableSink): void {
  setTimeout(() => {
    if (sink.dismiss()) upstream.dismiss(sink);
  }, CANCELLED_MS);
}
