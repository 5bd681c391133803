/**
 * Signs of life for subscribers to whom nothing was written for a while (contract 4.3). Time is counted in ticks, and
 * each subscription has a share of the interval of its own, or all of those that came at once would be due at once.
 */

import { formatCursor } from '../core/cursor.js';
import type { Subscription } from './subscription.js';

const TICK_MS_MIN = 10;
const TICK_MS_MAX = 1000;
const TICKS_PER_HEARTBEAT = 10;
/** Heartbeats go out after this share of the interval at the earliest, spread over the ticks to its end. */
const SHARE_MIN = 0.5;

export class Heartbeats {
  /** How long a tick is, milliseconds. */
  readonly tickIntervalMs: number;
  /** The tick that it is. */
  tick = 0;

  readonly #intervalTicks: number;
  /** A number from 0 up to 1. */
  readonly #random: () => number;

  constructor(intervalMs: number, random: () => number) {
    const tickMs = Math.floor(intervalMs / TICKS_PER_HEARTBEAT);
    this.tickIntervalMs = Math.min(TICK_MS_MAX, Math.max(TICK_MS_MIN, tickMs));
    this.#intervalTicks = Math.max(2, Math.floor(intervalMs / this.tickIntervalMs));
    this.#random = random;
  }

  /** Sets when a new subscription is due. */
  enlist(subscription: Subscription): void {
    const share = SHARE_MIN + (1 - SHARE_MIN) * this.#random();
    subscription.quietTicksMax = Math.max(1, Math.floor(this.#intervalTicks * share) - 1);
    subscription.writtenAtTick = this.tick;
    subscription.beatAtTick = this.tick;
  }

  isDue({ sink, beatAtTick, beatSeq, cursor, writtenAtTick, quietTicksMax }: Subscription): boolean {
    if (sink.beats === 'moved' && cursor !== beatSeq) return true;
    return this.tick - (sink.beats === 'quiet' ? writtenAtTick : beatAtTick) >= quietTicksMax;
  }

  /** @returns what the sink says: whether all was taken. */
  beat(subscription: Subscription): boolean {
    const { stream, sink, cursor, announced } = subscription;
    subscription.writtenAtTick = this.tick;
    subscription.beatAtTick = this.tick;
    subscription.beatSeq = cursor;
    subscription.announced = cursor;
    return sink.beat(formatCursor(stream.epoch, cursor), cursor > announced);
  }
}
