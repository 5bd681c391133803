/**
 * What named subscribers hold of a stream in a replicated log that rejects rather than evicts (contract 3.6): judged by
 * what this broker has taken up, as a publish is.
 */

import type { NamedSubscribers } from '../../broker/named-subscribers.js';
import { mustGo } from '../../core/retention.js';
import type { ReplicatedLog } from '../../storage/replicated-log.js';
import { findLastBefore, startOfEntry } from './entry-search.js';
import type { ReplicaStream } from './replica-stream.js';

export interface ReplicaHeldOptions {
  readonly log: ReplicatedLog;
  readonly named: Pick<NamedSubscribers, 'heldSeq'>;
}

export class ReplicaHeld {
  readonly #options: ReplicaHeldOptions;
  /** The event that was looked up last of each stream, and where its bytes begin, counted as entries count them. */
  readonly #starts = new WeakMap<ReplicaStream, { readonly seq: number; readonly bytes: number }>();

  constructor(options: ReplicaHeldOptions) {
    this.#options = options;
  }

  /** The lowest seq that is held; Infinity: nothing is. */
  seq({ ref, entry }: ReplicaStream): number {
    return this.#options.named.heldSeq(ref, entry.floor);
  }

  /** Whether what is held is more than the stream keeps, so that publishers have to wait. @throws {LogError} */
  async isFull(stream: ReplicaStream): Promise<boolean> {
    const { config, head, floor, bytes, floorBytes } = stream.entry;
    if (config.overflow !== 'reject') return false;
    const { retention } = config;
    const mayBeFull =
      mustGo(head - floor + 1, retention.events) > 0 || mustGo(bytes - floorBytes, retention.bytes) > 0;
    if (!mayBeFull) return false;
    const seq = this.seq(stream);
    if (seq > head) return false;
    if (mustGo(head - seq + 1, retention.events) > 0) return true;
    return mustGo(bytes - (await this.#startOf(stream, seq)), retention.bytes) > 0;
  }

  /** Exact to an entry. */
  async #startOf(stream: ReplicaStream, seq: number): Promise<number> {
    const { floor, floorBytes } = stream.entry;
    if (seq <= floor) return floorBytes;
    const known = this.#starts.get(stream);
    if (known?.seq === seq) return known.bytes;
    const found = await findLastBefore(this.#options.log, stream, ({ afterSeq }) => afterSeq >= seq);
    const bytes = found === null ? floorBytes : startOfEntry(found).bytes;
    this.#starts.set(stream, { seq, bytes });
    return bytes;
  }
}
