/**
 * What a broker knew of named subscribers when it noticed that the log has lost some of what was there: what tells more than
 * the log does now is written down again, so that nobody is given again what it has acknowledged, nor comes back who was
 * forgotten (I9). Of two entries of one subscriber the one tells more that joined later; then, that was forgotten; then, that
 * has acknowledged more. Positions say nothing of that any more.
 */

import { type Cursor, parseCursor } from '../../core/cursor.js';
import type { SubscriberEntry } from '../../storage/jetstream/subscriber-entry.js';
import type { ReplicatedLog, StoredSubscriber, SubscriberKey } from '../../storage/replicated-log.js';
import { following } from './newest-entry.js';
import type { Replica } from './replica.js';
import type { KnownSubscriber } from './replica-subscribers.js';
import type { WriteNames } from './write-names.js';

export interface LostSubscribersOptions {
  readonly log: ReplicatedLog;
  readonly replica: Pick<Replica, 'find'>;
  readonly names: WriteNames;
  readonly subscribers: {
    find(key: SubscriberKey): KnownSubscriber | undefined;
    catchUp(key: SubscriberKey): Promise<void>;
    appended(stored: StoredSubscriber, after: number): Promise<boolean>;
  };
}

/** How often other brokers may be first. */
const TRIES_MAX = 10;

export class LostSubscribers {
  readonly #options: LostSubscribersOptions;
  readonly #known: StoredSubscriber[] = [];

  constructor(options: LostSubscribersOptions) {
    this.#options = options;
  }

  add(stored: StoredSubscriber): void {
    this.#known.push(stored);
  }

  /** Once the log was followed again, and the streams are there. What is left is tried the next time. @throws {LogError} */
  async restore(): Promise<void> {
    for (let stored = this.#known[0]; stored !== undefined; stored = this.#known[0]) {
      await this.#restore(stored);
      this.#known.shift();
    }
  }

  /** Where the stream began anew, whoever made it anew, the subscriber is told so, and does not come as if it were new. */
  async #restore(lost: StoredSubscriber): Promise<void> {
    const { log, replica, names, subscribers } = this.#options;
    for (let tries = 0; tries < TRIES_MAX; tries++) {
      await subscribers.catchUp(lost);
      const stream = replica.find(lost.stream);
      if (stream === undefined) return;
      const known = subscribers.find(lost);
      const { origin } = stream.entry;
      const there = known?.stored.entry.origin === origin ? known.stored.entry : null;
      if (there === null ? lost.entry.acked === null : !tellsMore(lost.entry, there, stream.epoch)) return;
      const entry = { ...lost.entry, origin, ...following(known?.stored), writer: names.next() };
      const after = known?.tailAt ?? 0;
      const at = await log.subscribers.append(lost, entry, after);
      if (at !== null && (await subscribers.appended({ ...lost, entry, at }, after))) return;
    }
  }
}

/** @param epoch that the stream has now. */
function tellsMore(one: SubscriberEntry, other: SubscriberEntry, epoch: string): boolean {
  if (one.joinedMs !== other.joinedMs) return one.joinedMs > other.joinedMs;
  if (one.acked === null || other.acked === null) return one.acked === null && other.acked !== null;
  return isAhead(parseCursor(one.acked) as Cursor, parseCursor(other.acked) as Cursor, epoch);
}

function isAhead(one: Cursor, other: Cursor, epoch: string): boolean {
  return one.epoch === other.epoch ? one.seq > other.seq : one.epoch === epoch;
}
