/**
 * The answer to a publish (contract 3.3): at once in memory, and with a durable log when the commit has come (I4).
 */

import type { EdgeStream, Waiter } from '../broker/edge-stream.js';
import { formatCursor } from '../core/cursor.js';
import { RequestError } from '../errors.js';
import type { Exchange } from './exchange.js';

/** How long a publisher waits for a log that cannot commit before it is told that nobody knows. */
const COMMIT_MS_MAX = 10_000;

/** Where the events of a publish stand. */
export interface Placed {
  readonly first: number;
  readonly last: number;
  /** They were appended by an earlier request of the same producer, or with the same key (contract 3.4). */
  readonly isDuplicate: boolean;
}

export function answerPublished(
  exchange: Exchange,
  epoch: string,
  { first, last, isDuplicate }: Placed,
): void {
  const cursor = formatCursor(epoch, last);
  exchange.send(
    200,
    isDuplicate
      ? { 'Content-Type': 'application/json', 'Gapless-Cursor': cursor, 'Gapless-Duplicate': 'true' }
      : { 'Content-Type': 'application/json', 'Gapless-Cursor': cursor },
    `{"epoch":"${epoch}","first":${first},"last":${last}}`,
  );
}

/** After `expectReader` and the append. */
export function answerWhenCommitted(exchange: Exchange, stream: EdgeStream, placed: Placed): void {
  const { broker } = exchange.edge;
  const { last } = placed;
  // A repeat may come before the commit of the first, and then waits for it too; after it nothing would be announced.
  if (placed.isDuplicate && (broker.positions(stream)?.committed ?? 0) >= last) {
    broker.releaseReader(stream);
    return answerPublished(exchange, stream.epoch, placed);
  }
  const waiter: Waiter = {
    afterSeq: last - 1,
    reads: false,
    wake: () => {
      finish();
      const at = broker.positions(stream);
      if (at === null)
        exchange.fail(new RequestError('stream_not_found', 'it was deleted before the commit'));
      else if (at.committed >= last) answerPublished(exchange, stream.epoch, placed);
      else exchange.fail(commitUnknown());
    },
  };
  // One timer a publish: cheap beside a commit, and it fires only for a log that is stuck.
  const timer = setTimeout(() => {
    finish();
    exchange.fail(commitUnknown());
  }, COMMIT_MS_MAX);
  function finish(): void {
    clearTimeout(timer);
    broker.removeWaiter(stream, waiter);
  }
  exchange.onGone(finish);
  broker.addCommitWaiter(stream, waiter);
}

function commitUnknown(): RequestError {
  return new RequestError('commit_unknown', undefined, {}, { 'Retry-After': '1' });
}
