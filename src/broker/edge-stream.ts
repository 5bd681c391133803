/**
 * A stream as one edge knows it: its handle in shared memory and who reads it here.
 */

import { assert } from '../assert.js';
import type { StreamConfig } from '../core/retention.js';
import { LIVE_WINDOW_BYTES, LIVE_WINDOW_EVENTS } from '../ring/ring-memory.js';
import type { StreamHandle } from '../ring/rings.js';
import type { Subscription } from './subscription.js';

/** What the directory says about a stream; travels between threads. */
export interface StreamRef extends StreamHandle {
  readonly name: string;
  readonly config: StreamConfig;
}

/** Somebody who waits for the next event, once (contract 6, `wait`). */
export interface Waiter {
  readonly afterSeq: number;
  /** Whether it is sent away when the broker drains: a reader is, a publisher is waited for. */
  readonly reads: boolean;
  /**
   * Called once, when there is more, or the stream was closed or deleted, or the broker drains.
   * @param committed newest seq that is committed; null when the stream is no more.
   */
  wake(committed: number | null): void;
}

/**
 * Stands for no stream: a connection that follows any number of streams, perhaps none, is itself subscribed to this. It has
 * no slot in shared memory, and no events.
 */
export function nowhere(): EdgeStream {
  const retention = { events: 0, bytes: 0, ageMs: 0 };
  const config: StreamConfig = { retention, overflow: 'evict', ttlMs: 0 };
  return new EdgeStream({ name: '', slot: -1, generation: 0, epoch: '', config });
}

export class EdgeStream implements StreamHandle {
  readonly name: string;
  readonly slot: number;
  readonly generation: number;
  readonly epoch: string;
  /** Whether retention is so tight that readers hold it back; it is applied again when they have read. */
  readonly trimsAfterReading: boolean;

  readonly ready: Subscription[] = [];
  /** Their socket takes nothing now. */
  readonly stalled: Subscription[] = [];
  /** Their next event is being read from the durable log. */
  readonly waiting: Subscription[] = [];
  readonly waiters = new Set<Waiter>();
  /** Whether the fan-out has this stream in its list of those with something to do. */
  active = false;
  /** What the last drain saw: the newest committed seq, and whether the stream was closed. */
  drainedSeq = 0;
  drainedClosed = false;
  /** Where in `ready` the fan-out goes on. */
  nextIndex = 0;

  constructor(ref: StreamRef) {
    this.name = ref.name;
    this.slot = ref.slot;
    this.generation = ref.generation;
    this.epoch = ref.epoch;
    const { events, bytes } = ref.config.retention;
    this.trimsAfterReading =
      (events > 0 && events < LIVE_WINDOW_EVENTS) || (bytes > 0 && bytes < LIVE_WINDOW_BYTES);
  }

  get subscribers(): number {
    return this.ready.length + this.stalled.length + this.waiting.length;
  }

  get isNowhere(): boolean {
    return this.slot < 0;
  }

  get hasReaders(): boolean {
    return this.subscribers > 0 || this.waiters.size > 0;
  }

  *subscriptions(): Generator<Subscription> {
    yield* this.ready;
    yield* this.stalled;
    yield* this.waiting;
  }

  add(subscription: Subscription): void {
    this.#listOf(subscription).push(subscription);
    subscription.listIndex = this.#listOf(subscription).length - 1;
  }

  /** Moves a subscription to another state, and with it to another list. */
  move(subscription: Subscription, state: Subscription['state']): void {
    const list = this.#listOf(subscription);
    const last = list.pop() as Subscription;
    if (last !== subscription) {
      list[subscription.listIndex] = last;
      last.listIndex = subscription.listIndex;
    }
    subscription.state = state;
    subscription.listIndex = -1;
    if (state !== 'ended') this.add(subscription);
  }

  #listOf(subscription: Subscription): Subscription[] {
    assert(subscription.state !== 'ended', 'subscription: an ended one is in no list');
    return this[subscription.state];
  }
}
