/**
 * The answer to a publish with a durable log (contract 3.3): when the commit has come (I4).
 */

import type { EdgeStream, Waiter } from '../../broker/edge-stream.js';
import { RequestError } from '../../errors.js';
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
  broker.addCommitWaiter(stream, new CommitWaiter(publishing, stream, placed));
}

/** A publish whose events are appended and not committed. */
class CommitWaiter implements Waiter {
  readonly reads = false;
  readonly #publishing: Publishing;
  readonly #stream: EdgeStream;
  readonly #placed: Placed;
  /** One a publish: cheap beside a commit, and it fires only for a log that is stuck. */
  readonly #timer: NodeJS.Timeout;

  constructor(publishing: Publishing, stream: EdgeStream, placed: Placed) {
    this.#publishing = publishing;
    this.#stream = stream;
    this.#placed = placed;
    this.#timer = setTimeout(giveUp, COMMIT_MS_MAX, this);
    publishing.onGone(() => this.#leave());
  }

  get afterSeq(): number {
    return this.#placed.last - 1;
  }

  wake(committed: number | null): void {
    this.#leave();
    if (committed === null) {
      this.#publishing.fail(new RequestError('stream_not_found', 'it was deleted before the commit'));
    } else if (committed >= this.#placed.last) {
      this.#publishing.published(this.#stream.epoch, this.#placed);
    } else {
      this.giveUp();
    }
  }

  giveUp(): void {
    this.#leave();
    this.#publishing.fail(new RequestError('commit_unknown', undefined, {}, { 'Retry-After': '1' }));
  }

  #leave(): void {
    clearTimeout(this.#timer);
    this.#publishing.edge.broker.removeWaiter(this.#stream, this);
  }
}

function giveUp(waiter: CommitWaiter): void {
  waiter.giveUp();
}
