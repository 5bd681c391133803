/**
 * The answer to a publish with a durable log (contract 3.3): when the commit has come (I4).
 */

import type { EdgeStream, Waiter } from '../broker/edge-stream.js';
import { RequestError } from '../errors.js';
import type { Placed, Publishing } from './publishing.js';

/** How long a publisher waits for a log that cannot commit before it is told that nobody knows. */
const COMMIT_MS_MAX = 10_000;

/** After `expectReader` and the append. */
export function answerWhenCommitted(publishing: Publishing, stream: EdgeStream, placed: Placed): void {
  const { broker } = publishing.edge;
  const { last } = placed;
  // A repeat may come before the commit of the first, and then waits for it too; after it nothing would be announced.
  if (placed.isDuplicate && (broker.positions(stream)?.committed ?? 0) >= last) {
    broker.releaseReader(stream);
    return publishing.published(stream.epoch, placed);
  }
  const waiter: Waiter = {
    afterSeq: last - 1,
    reads: false,
    wake: () => {
      finish();
      const at = broker.positions(stream);
      if (at === null)
        publishing.fail(new RequestError('stream_not_found', 'it was deleted before the commit'));
      else if (at.committed >= last) publishing.published(stream.epoch, placed);
      else publishing.fail(commitUnknown());
    },
  };
  // One timer a publish: cheap beside a commit, and it fires only for a log that is stuck.
  const timer = setTimeout(() => {
    finish();
    publishing.fail(commitUnknown());
  }, COMMIT_MS_MAX);
  function finish(): void {
    clearTimeout(timer);
    broker.removeWaiter(stream, waiter);
  }
  publishing.onGone(finish);
  broker.addCommitWaiter(stream, waiter);
}

function commitUnknown(): RequestError {
  return new RequestError('commit_unknown', undefined, {}, { 'Retry-After': '1' });
}
