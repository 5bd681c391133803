/**
 * When a stream was used last, at any broker: for time to live. That it is read is no entry of the stream's own, for those
 * lie among its events and stay as long: it is one of a subject of its own, of which the newest alone is needed.
 *
 * Single owner: the main thread.
 */

import { formatCursor } from '../../core/cursor.js';
import { LogError } from '../../storage/event-log.js';
import { READERS, type ReplicatedLog, type SubscriberKey } from '../../storage/replicated-log.js';
import { following } from './newest-entry.js';
import type { ReplicaStream } from './replica-stream.js';
import type { ReplicaSubscribers } from './replica-subscribers.js';
import type { Replication } from './replication.js';
import type { WriteNames } from './write-names.js';

export interface StreamUseOptions {
  readonly log: ReplicatedLog;
  readonly replication: Pick<Replication, 'checkHealthy' | 'unavailable'>;
  readonly subscribers: ReplicaSubscribers;
  readonly names: WriteNames;
}

export class StreamUse {
  readonly #options: StreamUseOptions;

  constructor(options: StreamUseOptions) {
    this.#options = options;
  }

  /** Unix time, milliseconds, as far as this broker knows. */
  lastMs(stream: ReplicaStream): number {
    const { entry } = stream;
    const read = this.#options.subscribers.find(readersOf(stream))?.stored.entry;
    return read?.origin === entry.origin ? Math.max(entry.atMs, read.atMs) : entry.atMs;
  }

  /** Takes up what other brokers have said of it, up to now. @throws {LogError} */
  look(stream: ReplicaStream): Promise<void> {
    return this.#options.subscribers.catchUp(readersOf(stream));
  }

  /** Says that it is read, unless another broker does so at the same time. @throws {RequestError} */
  async touch(stream: ReplicaStream, nowMs: number): Promise<void> {
    const { log, replication, subscribers, names } = this.#options;
    replication.checkHealthy();
    const key = readersOf(stream);
    const known = subscribers.find(key);
    const after = known?.tailAt ?? 0;
    const entry = {
      origin: stream.entry.origin,
      acked: formatCursor(stream.epoch, 0),
      ...following(known?.stored),
      joinedMs: nowMs,
      atMs: nowMs,
      writer: names.next(),
    };
    try {
      const at = await log.subscribers.append(key, entry, after);
      if (at === null) await subscribers.catchUp(key);
      else await subscribers.appended({ ...key, at, entry }, after);
    } catch (error) {
      throw error instanceof LogError ? replication.unavailable(error) : error;
    }
  }
}

function readersOf({ name }: ReplicaStream): SubscriberKey {
  return { stream: name, subscriber: READERS };
}
