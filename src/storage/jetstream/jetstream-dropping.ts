/**
 * Deletes the old messages of a subject. A purge does it at once; where not all servers do that as they should, messages are
 * deleted one by one (purge-judge.ts).
 */

import { JetStreamApiError, type JetStreamManager } from '@nats-io/jetstream';
import type { PurgeJudge } from './purge-judge.js';

/** Deletions under way at a time. */
const AT_ONCE_MAX = 32;
/** Not there: another broker was faster. */
const GONE_CODES: ReadonlySet<number> = new Set([10043, 10057]);

/** Position of the first message of a subject from a position on; null: there is none. */
type NextAt = (subject: string, from: number) => Promise<number | null>;

export class JetStreamDropping {
  readonly #manager: JetStreamManager;
  readonly #stream: string;
  readonly #nextAt: NextAt;
  readonly #judge: Pick<PurgeJudge, 'mayPurge'>;

  constructor(
    manager: JetStreamManager,
    { stream, nextAt, judge }: { stream: string; nextAt: NextAt; judge: Pick<PurgeJudge, 'mayPurge'> },
  ) {
    this.#manager = manager;
    this.#stream = stream;
    this.#nextAt = nextAt;
    this.#judge = judge;
  }

  /** @throws an error of JetStream; some may be deleted by then. */
  async drop(filter: string, below: number, { isReplicated }: { isReplicated: boolean }): Promise<void> {
    // JetStream takes a position before which nothing can lie for none at all, and purges everything.
    if (below <= 1) return;
    if (!isReplicated || (await this.#judge.mayPurge())) {
      await this.#manager.streams.purge(this.#stream, { filter, seq: below });
    } else {
      await this.#deleteEach(filter, below);
    }
  }

  /** Which has to be agreed on like any deletion. @throws an error of JetStream */
  dropNothing(): Promise<void> {
    return this.#delete(0);
  }

  async #deleteEach(filter: string, below: number): Promise<void> {
    const underWay = new Set<Promise<void>>();
    let failure: unknown = null;
    for (let from = 1; ; ) {
      const at = await this.#nextAt(filter, from);
      if (at === null || at >= below) break;
      from = at + 1;
      const deleting = this.#delete(at)
        .catch((error: unknown) => {
          failure ??= error;
        })
        .finally(() => underWay.delete(deleting));
      underWay.add(deleting);
      if (underWay.size >= AT_ONCE_MAX) await Promise.race(underWay);
      if (failure !== null) break;
    }
    await Promise.all(underWay);
    if (failure !== null) throw failure;
  }

  async #delete(at: number): Promise<void> {
    try {
      await this.#manager.streams.deleteMessage(this.#stream, at, false);
    } catch (error) {
      if (!(error instanceof JetStreamApiError && GONE_CODES.has(error.code))) throw error;
    }
  }
}
