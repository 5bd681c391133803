/**
 * What is too much of one caller, of one stream, or for the edge as it is doing (contract 9.3). Limits hold over all
 * edges; pressure is of this one. Live subscriptions are never ended for others' sake.
 */

import { createHash } from 'node:crypto';
import { identityOf, type Principal } from '../../auth/principal.js';
import type { Config } from '../../config/schema.js';
import { nextPressure } from '../../core/pressure.js';
import { lowestReadable } from '../../core/resume.js';
import { type ErrorCode, RequestError } from '../../errors.js';
import { Counter, type Counters } from '../../ring/counters.js';
import type { StreamPositions } from '../../ring/lifecycle.js';
import { BYTES_PER_UNIT, Tally, type TallyKey, TallyOf } from '../../ring/tally.js';

/** Who a request is counted for. */
export interface Caller {
  readonly principal: Principal;
  /** Null where no limit is by address. */
  readonly address: TallyKey | null;
}

export interface LimitsOptions {
  readonly config: Config;
  readonly tallies: SharedArrayBuffer;
  /** Nobody outside can tell which keys meet in a cell. */
  readonly seed: string;
  readonly counters: Counters;
  /** Open subscriptions over all edges. */
  readonly subscribers: () => number;
  /** `Retry-After`, jittered. */
  readonly retryAfter: () => string;
}

/** A replay counts as this share of the budget at most: who is far behind may come, but not over and over. */
const REPLAY_SHARE_MAX = 0.25;

export class Limits {
  readonly needsAddress: boolean;
  readonly #options: LimitsOptions;
  readonly #limitsPublishes: boolean;
  readonly #addressSubscribers: Tally;
  readonly #events: Tally;
  readonly #byteUnits: Tally;
  readonly #replayUnits: Tally;
  readonly #keyOf = new WeakMap<Principal, TallyKey>();
  #pressureMs = 0;

  constructor(options: LimitsOptions) {
    this.#options = options;
    const { config, tallies } = options;
    this.#limitsPublishes = config.publishEventsRate > 0 || config.publishBytesRate > 0;
    this.needsAddress =
      config.addressSubscribersMax > 0 || config.addressReplayBytesMax > 0 || this.#limitsPublishes;
    this.#addressSubscribers = new Tally(tallies, TallyOf.addressSubscribers);
    this.#events = new Tally(tallies, TallyOf.publishedEvents);
    this.#byteUnits = new Tally(tallies, TallyOf.publishedByteUnits);
    this.#replayUnits = new Tally(tallies, TallyOf.replayedByteUnits);
  }

  /** The key of an address, or of whatever else is counted. */
  key(text: string): TallyKey {
    const hash = createHash('sha256').update(this.#options.seed).update(text).digest();
    return { first: hash.readInt32LE(0), second: hash.readInt32LE(4) };
  }

  /** Told by how much the loop was late, ten times a second. */
  observeDelay(delayMs: number): void {
    this.#pressureMs = nextPressure(this.#pressureMs, delayMs);
  }

  /**
   * Before an append.
   * @throws {RequestError} `rate_limited`
   */
  admitPublish(caller: Caller, events: number, bodyBytes: number): void {
    if (!this.#limitsPublishes) return;
    const { publishEventsRate, publishBytesRate } = this.#options.config;
    const key = this.#publisherKey(caller);
    if (key === null) return;
    // A whole batch passes while the last second was not full, or one larger than a second never could.
    const isFull =
      (publishEventsRate > 0 && this.#events.level(key) >= publishEventsRate) ||
      (publishBytesRate > 0 && this.#byteUnits.level(key) >= publishBytesRate / BYTES_PER_UNIT);
    if (isFull) throw this.#refusal('rate_limited', Counter.refusedRate);
    if (publishEventsRate > 0) this.#events.add(key, events);
    if (publishBytesRate > 0) this.#byteUnits.add(key, Math.ceil(bodyBytes / BYTES_PER_UNIT));
  }

  /**
   * Before a subscription is registered.
   * @throws {RequestError} `overloaded`, `too_many_subscriptions`, `replay_limited`
   */
  admitSubscriber(caller: Caller, at: StreamPositions, afterSeq: number): void {
    this.admitFollower(caller);
    const { streamSubscribersMax } = this.#options.config;
    if (streamSubscribersMax > 0 && at.subscribers >= streamSubscribersMax) {
      throw this.#refusal('too_many_subscriptions', Counter.streamSubscribersRefused, 'stream');
    }
    this.admitReplay(caller, at, afterSeq);
  }

  /**
   * Before a subscription is registered that may be to no stream yet.
   * @throws {RequestError} `overloaded`, `too_many_subscriptions`
   */
  admitFollower({ address }: Pick<Caller, 'address'>): void {
    const { config, subscribers } = this.#options;
    const { subscribersMax, addressSubscribersMax, shedSubscriptionsMs } = config;
    if (shedSubscriptionsMs > 0 && this.#pressureMs >= shedSubscriptionsMs) {
      throw this.#refusal('overloaded', Counter.shedSubscriptions);
    }
    if (subscribersMax > 0 && subscribers() >= subscribersMax) {
      throw this.#refusal('too_many_subscriptions', Counter.subscribersRefused, 'server');
    }
    if (address === null || addressSubscribersMax === 0) return;
    if (this.#addressSubscribers.level(address) >= addressSubscribersMax) {
      throw this.#refusal('too_many_subscriptions', Counter.addressSubscribersRefused, 'address');
    }
  }

  /**
   * Before events are read that were there before.
   * @throws {RequestError} `overloaded`, `replay_limited`
   */
  admitReplay({ address }: Caller, at: StreamPositions, afterSeq: number): void {
    if (afterSeq >= at.committed) return;
    const { shedReplaysMs, addressReplayBytesMax } = this.#options.config;
    if (shedReplaysMs > 0 && this.#pressureMs >= shedReplaysMs) {
      throw this.#refusal('overloaded', Counter.shedReplays);
    }
    if (address === null || addressReplayBytesMax === 0) return;
    const budget = addressReplayBytesMax / BYTES_PER_UNIT;
    if (this.#replayUnits.level(address) >= budget) {
      throw this.#refusal('replay_limited', Counter.replaysLimited);
    }
    const units = bytesBehind(at, afterSeq) / BYTES_PER_UNIT;
    this.#replayUnits.add(address, Math.ceil(Math.min(units, budget * REPLAY_SHARE_MAX)));
  }

  /** After a subscription was registered, and after it has left. */
  countSubscriber(address: TallyKey | null, change: 1 | -1): void {
    if (address !== null) this.#addressSubscribers.add(address, change);
  }

  #publisherKey({ principal, address }: Caller): TallyKey | null {
    if (principal.keyName === '') return address;
    let key = this.#keyOf.get(principal);
    if (key === undefined) {
      key = this.key(`publisher:${identityOf(principal)}`);
      this.#keyOf.set(principal, key);
    }
    return key;
  }

  #refusal(code: ErrorCode, counter: number, scope?: string): RequestError {
    this.#options.counters.add(counter, 1);
    const extra = scope === undefined ? {} : { scope };
    return new RequestError(code, undefined, extra, { 'Retry-After': this.#options.retryAfter() });
  }
}

/** By the average event in memory: what is in the log only is not looked at for an estimate. */
function bytesBehind(at: StreamPositions, afterSeq: number): number {
  const eventsInRing = Math.max(1, at.head - at.floor + 1);
  const behind = at.committed - Math.max(afterSeq, lowestReadable(at) - 1);
  return behind * Math.max(64, at.bytes / eventsInRing);
}
