import assert from 'node:assert/strict';
import { RequestError } from '#gapless/errors.js';
import { LogError } from '#gapless/storage/event-log.js';
import { eventually } from '../support/deadline.js';
import { SharedMedium } from '../support/memory-replicated-log.js';
import type { Prng } from '../support/prng.js';
import { ReplicaStage } from './replica-stage.js';

const BROKERS = 3;
/** How far clocks differ at most. */
export const SKEW_MS = 10_000;
/** Brokers that are cut off in a round. */
const CUT_OFF_MAX = 2;
/** After so many everybody has let go of what is due. */
const SWEEPS = 8;

/**
 * Several brokers over one log that fail, and the log with them, as a seed says.
 */
export class SharedLogBrokers {
  readonly medium = new SharedMedium();
  nowMs = 1_700_000_000_000;
  readonly #prng: Prng;
  readonly #streams: readonly string[];
  readonly #isExact: boolean;
  readonly #skews: number[];
  readonly #brokers: ReplicaStage[] = [];
  /** Those that are cut off from the log, and from clients, until the end of the round. */
  readonly #cutOff: ReplicaStage[] = [];
  /** Tells a broker that it does not follow the log any more. */
  readonly #lost = new Map<ReplicaStage, (reason: string) => void>();
  readonly #cut = new Map<ReplicaStage, { promise: Promise<'commit_unknown'>; cut: () => void }>();
  #isCalm = true;
  /** The log has lost something in this round. */
  #hasLost = false;
  #failure: Error | null = null;

  constructor(prng: Prng, streams: readonly string[]) {
    this.#prng = prng;
    this.#streams = streams;
    this.#isExact = prng.chance(0.25);
    this.#skews = Array.from({ length: BROKERS }, () => prng.pick([0, prng.between(-SKEW_MS, SKEW_MS)]));
  }

  async begin(): Promise<void> {
    for (const index of this.#skews.keys()) this.#brokers.push(await this.start(index));
  }

  /** One of those that clients reach. */
  any(): ReplicaStage {
    return this.#prng.pick(this.#brokers);
  }

  /** Those that clients reach, and what was cut off while all stand still. */
  all(): readonly ReplicaStage[] {
    return this.#brokers;
  }

  check(): void {
    if (this.#failure !== null) throw this.#failure;
  }

  /** Everything may go wrong from now on. */
  letLoose(): void {
    this.#isCalm = false;
  }

  /** @param index whose clock it has; without, that of clients. */
  async start(index = BROKERS): Promise<ReplicaStage> {
    const prng = this.#prng;
    const pause = async (): Promise<void> => {
      if (this.#cutOff.includes(stage)) await new Promise((resolve) => setTimeout(resolve, 5));
      if (this.#isCalm) return;
      for (let turns = prng.below(4); turns > 0; turns--)
        await new Promise((resolve) => setImmediate(resolve));
    };
    const random = (): number => prng.below(2 ** 30) / 2 ** 30;
    const stage = new ReplicaStage({ medium: this.medium, pause, random });
    stage.log.isExact = this.#isExact;
    const { follow } = stage.log;
    stage.log.follow = (lastAt, follower) => {
      stage.log.isDeaf = false;
      this.#lost.set(stage, follower.lost);
      return follow.call(stage.log, lastAt, follower);
    };
    stage.log.fate = () =>
      this.#isCalm || prng.chance(0.93) ? 'answered' : prng.pick(['unanswered', 'lost', 'late'] as const);
    stage.log.lateBy = () => prng.between(1, prng.pick([3, 30]));
    stage.nowMs = this.nowMs + (this.#skews[index] ?? 0);
    let cut: () => void = () => undefined;
    const promise = new Promise<'commit_unknown'>((resolve) => {
      cut = () => resolve('commit_unknown');
    });
    this.#cut.set(stage, { promise, cut });
    await eventually('a broker to start', async () => {
      try {
        await stage.replication.start();
        return true;
      } catch (error) {
        assert.ok(error instanceof LogError, String(error));
        return false;
      }
    });
    void stage.replication.failed.then((error) => {
      this.#failure ??= error;
    });
    return stage;
  }

  later(ms: number): void {
    this.nowMs += ms;
    for (const broker of [...this.#brokers, ...this.#cutOff]) broker.nowMs += ms;
  }

  /** @returns a code, where it was refused. */
  async ask<T>(broker: ReplicaStage, codes: readonly string[], ask: () => Promise<T>): Promise<T | string> {
    try {
      return await Promise.race([ask(), this.#cut.get(broker)?.promise ?? 'commit_unknown']);
    } catch (error) {
      assert.ok(error instanceof RequestError, String((error as Error).stack));
      const { code } = error;
      assert.ok(['commit_unknown', 'log_unavailable', ...codes].includes(code), `refused: ${code}`);
      return code;
    }
  }

  sweep({ retention, takenUp, room }: ReplicaStage): void {
    retention.sweep();
    takenUp.sweep();
    void room.look();
  }

  disturb(): void {
    const broker = this.any();
    if (this.#prng.chance(0.5)) {
      void this.#goAway(broker);
    } else if (broker.log.isDeaf) {
      this.#lost.get(broker)?.('told to have been deaf');
    } else {
      broker.log.isDeaf = true;
    }
  }

  async #goAway(broker: ReplicaStage): Promise<void> {
    broker.log.isAway = true;
    for (let turns = this.#prng.between(1, 100); turns > 0; turns--)
      await new Promise((resolve) => setImmediate(resolve));
    broker.log.isAway = this.#cutOff.includes(broker);
  }

  /** A broker is cut off from everybody, and another one started in its place. */
  async restart(): Promise<void> {
    // Who starts on a log that has lost something cannot know that.
    if (this.#cutOff.length >= CUT_OFF_MAX || this.#hasLost) return;
    const index = this.#prng.below(BROKERS);
    const fresh = await this.start(index);
    const broker = this.#brokers[index] as ReplicaStage;
    this.#brokers[index] = fresh;
    broker.log.isAway = true;
    this.#cut.get(broker)?.cut();
    this.#cutOff.push(broker);
  }

  /** What was under way goes on, also where brokers were cut off, for the last time, and all come to the same. */
  async calmDown(): Promise<void> {
    this.#isCalm = true;
    this.#brokers.push(...this.#cutOff.splice(0));
    for (const broker of this.#brokers) {
      broker.log.isAway = false;
      if (broker.log.isDeaf) this.#lost.get(broker)?.('told to have been deaf');
    }
    await this.#inStep();
    for (let sweeps = 0; sweeps < SWEEPS; sweeps++) {
      for (const broker of this.#brokers) this.sweep(broker);
      await settled();
    }
    await this.#inStep();
  }

  async #inStep(): Promise<void> {
    for (const broker of this.#brokers) {
      await eventually('a broker to be in step', async () => {
        const refreshed = this.#streams.map((name) => broker.replication.refresh(name));
        const outcomes = await Promise.allSettled(refreshed);
        const isThere = outcomes.every(({ status }) => status === 'fulfilled');
        return isThere && broker.takenUp.knowsUpTo(this.medium.newestAt);
      });
    }
    await settled();
    this.check();
  }

  /** The log loses its newest entries, or all, and everybody who follows it hears that something may be missing. */
  async lose(count: number): Promise<void> {
    await settled();
    this.#hasLost = true;
    this.medium.lose(count);
    if (count === Number.POSITIVE_INFINITY) this.medium.identity = `another than ${this.medium.identity}`;
    for (const broker of this.#brokers) this.#lost.get(broker)?.('told that the log failed');
  }

  /** Those that were cut off end: what they still wanted to write does not come any more. */
  goOn(): void {
    this.#hasLost = false;
    for (const broker of this.#brokers.splice(BROKERS)) end(broker);
  }
}

/** As a broker does that is told to end. */
export function end({ replication, log }: ReplicaStage): void {
  replication.stop();
  void log.close();
}

async function settled(): Promise<void> {
  for (let turns = 0; turns < 20; turns++) await new Promise((resolve) => setImmediate(resolve));
}
