/**
 * What happened lately, as far as this page has been told: read on and on, the newest few hundred kept.
 */

import type { ActivityAnswer, NumberedHappening } from '../../wire/happening.js';
import type { Broker } from './broker.js';
import { poll } from './poll.js';

const KEPT_MAX = 300;

export class ActivityStore {
  /** The newest first. */
  happenings: readonly NumberedHappening[] = [];
  /** What happened too fast to be told. */
  missed = 0;
  readonly #changed = new Set<() => void>();
  #next: string | null = null;

  /** Calls back now and with each change. */
  onChange(changed: () => void, signal: AbortSignal): void {
    this.#changed.add(changed);
    signal.addEventListener('abort', () => this.#changed.delete(changed));
    changed();
  }

  follow(broker: Broker, fail: (error: unknown) => boolean, signal: AbortSignal): Promise<void> {
    return poll({
      ask: () => broker.activity(this.#next),
      show: (page) => this.#add(page),
      fail,
      signal,
    });
  }

  #add({ activity, next, missed }: ActivityAnswer): void {
    this.#next = next;
    if (activity.length === 0 && missed === 0) return;
    // Null: the broker was started again, and begins to count anew.
    this.missed += missed ?? 0;
    this.happenings = [...activity.toReversed(), ...this.happenings].slice(0, KEPT_MAX);
    for (const changed of this.#changed) changed();
  }
}
