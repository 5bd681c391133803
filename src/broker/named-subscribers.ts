/**
 * Named subscribers (contract 4.8, 7): what each is known to have. Cold path: a question for each who joins, and for
 * each acknowledgement. Single owner: the coordinator.
 */

import { acknowledge, joinNamed, lowestHeld } from '../core/acknowledge.js';
import { type Cursor, formatCursor, parseCursor } from '../core/cursor.js';
import { lowestReadable, type Start } from '../core/resume.js';
import { RequestError } from '../errors.js';
import type { StreamState } from './directory.js';
import type { StreamRef } from './edge-stream.js';
import type { Journal } from './journal.js';
import { refusal } from './refusal.js';

/** Named subscribers of one stream. */
export const STREAM_SUBSCRIBERS_MAX = 1000;

export interface NamedSubscribersOptions {
  readonly streams: { state(name: string): StreamState | null };
  readonly journal: Journal;
  /** Over all streams. */
  readonly subscribersMax: number;
  /**
   * Has a stream keep what it has from this seq on; Infinity: nothing is held (contract 3.6). Null with a durable log,
   * which knows what is acknowledged, as it is committed.
   */
  readonly hold: ((ref: StreamRef, seq: number) => void) | null;
}

/** A named subscriber, as a stream's state shows it (contract 2.2). */
export interface NamedSubscriber {
  readonly name: string;
  readonly acked: string;
  /** Events that may be seen and are not acknowledged; null where what is known is of another epoch. */
  readonly lag: number | null;
}

/** What comes of what somebody asks for a subscriber, before it is written down. */
export interface Judged {
  readonly state: StreamState;
  /** What is known of it from now on; null: nothing, as before. */
  readonly acked: Cursor | null;
  /** Whether that is other than it was; `joins`: it was not known. */
  readonly change: 'joins' | 'moves' | 'none';
}

export class NamedSubscribers {
  readonly #options: NamedSubscribersOptions;
  readonly #byEpoch = new Map<string, Map<string, Cursor>>();
  /** By epoch: what is held of the streams that reject rather than evict. */
  readonly #held = new Map<string, { readonly name: string; readonly seq: number }>();
  #size = 0;
  #acknowledgements = 0;

  constructor(options: NamedSubscribersOptions) {
    this.#options = options;
  }

  /** Over all streams. */
  get size(): number {
    return this.#size;
  }

  /** Acknowledgements taken, whether they moved anything or not. */
  get acknowledgements(): number {
    return this.#acknowledgements;
  }

  /**
   * Somebody subscribes under a name.
   *
   * @returns where the subscription begins, which may yet be refused; null: there is no such stream.
   * @throws {RequestError} `too_many_subscribers`
   */
  join(stream: string, subscriber: string, start: Start): { start: Start } | null {
    const judged = this.judgeJoin(stream, subscriber, start);
    if (judged === null) return null;
    this.#move(subscriber, judged);
    return { start: judged.start };
  }

  /**
   * @returns what the subscriber is known to have now; null: there is no such stream.
   * @throws {RequestError} `subscriber_not_found`, `ack_ahead`, or `resume_unavailable` for another epoch
   */
  acknowledge(stream: string, subscriber: string, cursor: Cursor): string | null {
    const judged = this.judgeAcknowledgement(stream, subscriber, cursor);
    if (judged === null) return null;
    this.acknowledgementTaken();
    this.#move(subscriber, judged);
    return formatCursor(judged.acked.epoch, judged.acked.seq);
  }

  /** As `join`, but nothing moves yet. */
  judgeJoin(stream: string, subscriber: string, start: Start): (Judged & { readonly start: Start }) | null {
    const state = this.#options.streams.state(stream);
    if (state === null) return null;
    const before = this.#byEpoch.get(state.ref.epoch)?.get(subscriber) ?? null;
    const joined = joinNamed(start, before, state.positions);
    if (joined.acked !== null && before === null) this.#checkRoom(state.ref.epoch);
    return { ...joined, state, change: changeOf(before, joined.acked) };
  }

  /** As `acknowledge`, but nothing moves yet. */
  judgeAcknowledgement(
    stream: string,
    subscriber: string,
    cursor: Cursor,
  ): (Judged & { readonly acked: Cursor }) | null {
    const state = this.#options.streams.state(stream);
    if (state === null) return null;
    const { ref, positions } = state;
    const before = this.#byEpoch.get(ref.epoch)?.get(subscriber);
    if (before === undefined) throw new RequestError('subscriber_not_found');
    const known = acknowledge(cursor, before, positions);
    if (known.outcome === 'ahead') {
      throw new RequestError('ack_ahead', undefined, { head: formatCursor(ref.epoch, positions.committed) });
    }
    if (known.outcome === 'epoch_changed') {
      const at = { epoch: ref.epoch, floor: lowestReadable(positions), head: positions.committed };
      throw refusal('epoch_changed', formatCursor(cursor.epoch, cursor.seq), at);
    }
    return { state, acked: known.acked, change: changeOf(before, known.acked) };
  }

  acknowledgementTaken(): void {
    this.#acknowledgements++;
  }

  /** Whether a stream has this one. */
  has(epoch: string, subscriber: string): boolean {
    return this.#byEpoch.get(epoch)?.has(subscriber) === true;
  }

  /** @returns whether there was one. */
  forget(stream: string, subscriber: string): boolean {
    const state = this.#options.streams.state(stream);
    if (state === null || !this.has(state.ref.epoch, subscriber)) return false;
    this.take(state.ref.epoch, subscriber, null);
    this.#options.journal.acknowledged(state.ref, subscriber, null);
    this.#hold(state);
    return true;
  }

  /** Time may have taken what somebody held, who then holds nothing any more. Call it a few times a second. */
  sweep(): void {
    for (const { name, seq } of this.#held.values()) {
      const state = this.#options.streams.state(name);
      if (state !== null && state.positions.floor > seq) this.#hold(state);
    }
  }

  /** The named subscribers of a stream, in order of their names. */
  list({ ref, positions }: StreamState): NamedSubscriber[] {
    const known = [...(this.#byEpoch.get(ref.epoch) ?? [])].sort(([a], [b]) => (a < b ? -1 : 1));
    return known.map(([name, { epoch, seq }]) => {
      const lag = epoch === ref.epoch ? positions.committed - seq : null;
      return { name, acked: formatCursor(epoch, seq), lag };
    });
  }

  /** How far the slowest of a stream is behind, events; 0 without any. */
  lag(state: StreamState): number {
    return this.list(state).reduce((most, { lag }) => Math.max(most, lag ?? 0), 0);
  }

  /** Takes up what the durable log has. */
  restore(epoch: string, acked: ReadonlyMap<string, string>): void {
    for (const [subscriber, text] of acked) this.take(epoch, subscriber, parseCursor(text) as Cursor);
  }

  /** Takes up what is known of one; null: it is forgotten. */
  take(epoch: string, subscriber: string, cursor: Cursor | null): void {
    let known = this.#byEpoch.get(epoch);
    if (cursor === null) {
      if (known?.delete(subscriber) === true) this.#size--;
      return;
    }
    if (known === undefined) {
      known = new Map();
      this.#byEpoch.set(epoch, known);
    }
    if (!known.has(subscriber)) this.#size++;
    known.set(subscriber, cursor);
  }

  /** The lowest seq that those of a stream hold, if it rejects rather than evicts; Infinity: nothing is held. */
  heldSeq({ epoch, config }: StreamRef, floor: number): number {
    if (config.overflow !== 'reject') return Number.POSITIVE_INFINITY;
    return lowestHeld(this.#byEpoch.get(epoch)?.values() ?? [], { epoch, floor });
  }

  /** The stream is no more. */
  drop(epoch: string): void {
    this.#size -= this.#byEpoch.get(epoch)?.size ?? 0;
    this.#byEpoch.delete(epoch);
    this.#held.delete(epoch);
  }

  #move(subscriber: string, { state, acked, change }: Judged): void {
    const { ref } = state;
    if (acked === null || change === 'none') return;
    const before = this.#byEpoch.get(ref.epoch)?.get(subscriber);
    this.take(ref.epoch, subscriber, acked);
    this.#options.journal.acknowledged(ref, subscriber, formatCursor(acked.epoch, acked.seq));
    // Who was not the last of them has not moved what all of them hold.
    if (before === undefined || before.seq + 1 <= (this.#held.get(ref.epoch)?.seq ?? 0)) this.#hold(state);
  }

  /** Has the stream keep from now on what its named subscribers hold. */
  #hold({ ref, positions }: StreamState): void {
    const { hold } = this.#options;
    if (hold === null || ref.config.overflow !== 'reject') return;
    const seq = this.heldSeq(ref, positions.floor);
    if (seq === Number.POSITIVE_INFINITY) this.#held.delete(ref.epoch);
    else this.#held.set(ref.epoch, { name: ref.name, seq });
    hold(ref, seq);
  }

  #checkRoom(epoch: string): void {
    const { subscribersMax } = this.#options;
    const ofStream = this.#byEpoch.get(epoch)?.size ?? 0;
    if (ofStream < STREAM_SUBSCRIBERS_MAX && this.#size < subscribersMax) return;
    const limit = ofStream < STREAM_SUBSCRIBERS_MAX ? subscribersMax : STREAM_SUBSCRIBERS_MAX;
    throw new RequestError('too_many_subscribers', undefined, { limit });
  }
}

function changeOf(before: Cursor | null, after: Cursor | null): Judged['change'] {
  if (before === null) return after === null ? 'none' : 'joins';
  return after === null || (before.epoch === after.epoch && before.seq === after.seq) ? 'none' : 'moves';
}
