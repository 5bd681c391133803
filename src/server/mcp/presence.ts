/**
 * Which of the brokers on a shared log are there: each writes into a stream of its own every second. One of which nothing
 * has come for a while, as this broker's own clock has it, is taken for gone. That may be wrong, for it may only be slow;
 * so whoever goes on with its streams takes them over first (replicated-appends.ts).
 */

import type { StreamRef } from '../../broker/edge-stream.js';
import { OWN_STREAMS_PREFIX } from '../../core/stream-name.js';
import { RequestError } from '../../errors.js';
import type { EdgeLink } from '../edge/edge-link.js';
import { partsOf } from './frame-parts.js';
import { KEEPS_NEWEST } from './record-streams.js';

const BEAT_MS = 1000;
/** One look is for all who ask within that time. */
const LOOK_MS = 400;
/** A broker that could not write for so long judges no other: the fault may be the log's, or its own. */
const WRITTEN_MS = 3000;
/** Time without a sign of a broker after which it is taken for gone. */
const GONE_MS = 5000;
const CONFIG = { ...KEEPS_NEWEST, ttlMs: 60_000 };
/** Brokers looked at; the one that was first asked for is forgotten first. */
const SEEN_MAX = 1000;

export interface PresenceOptions {
  readonly link: Pick<EdgeLink, 'ask'>;
  /** What this broker is called. */
  readonly broker: string;
  readonly head: (stream: StreamRef) => number | null;
  readonly now: () => number;
}

export class Presence {
  readonly #options: PresenceOptions;
  readonly #beat = partsOf('', null);
  readonly #seen = new Map<string, { head: number; sinceMs: number }>();
  readonly #looking = new Map<string, { isGone: Promise<boolean>; sinceMs: number }>();
  #beatAtMs = Number.NEGATIVE_INFINITY;
  #isBeating = false;
  #writtenAtMs = Number.NEGATIVE_INFINITY;

  constructor(options: PresenceOptions) {
    this.#options = options;
  }

  /** Says that this broker is there. To be called before it appends to anything. @throws {RequestError} */
  async begin(): Promise<void> {
    await this.#options.link.ask('put', { name: nameOf(this.#options.broker), config: CONFIG });
  }

  /** Shows that this broker is there. Call it every few hundred milliseconds. */
  keep(): void {
    const nowMs = this.#options.now();
    if (this.#isBeating || nowMs - this.#beatAtMs < BEAT_MS) return;
    this.#isBeating = true;
    this.#beatAtMs = nowMs;
    void this.#write().finally(() => {
      this.#isBeating = false;
    });
  }

  /** This broker goes: others need not wait to be sure. */
  async leave(): Promise<void> {
    await this.#asked(this.#options.link.ask('remove', { name: nameOf(this.#options.broker) }));
  }

  /** Whether a broker is taken for gone. While the log cannot say, none is. */
  async isGone(broker: string): Promise<boolean> {
    if (broker === this.#options.broker) return false;
    let looking = this.#looking.get(broker);
    if (looking === undefined || this.#options.now() - looking.sinceMs >= LOOK_MS) {
      looking = { isGone: this.#look(broker), sinceMs: this.#options.now() };
      this.#looking.set(broker, looking);
      forgetOldest(this.#looking);
    }
    return looking.isGone;
  }

  async #look(broker: string): Promise<boolean> {
    const { link, now, head: headOf } = this.#options;
    const name = nameOf(broker);
    try {
      if (now() - this.#writtenAtMs > WRITTEN_MS) throw new RequestError('log_unavailable');
      await link.ask('refresh', { name, sought: null });
      const ref = await link.ask('resolve', { name, create: false });
      const head = ref === null ? null : headOf(ref);
      if (head === null) return true;
      const seen = this.#seen.get(broker);
      if (seen?.head === head) return now() - seen.sinceMs >= GONE_MS;
      this.#remember(broker, head);
    } catch (error) {
      if (!(error instanceof RequestError)) throw error;
      this.#seen.delete(broker);
    }
    return false;
  }

  #remember(broker: string, head: number): void {
    this.#seen.set(broker, { head, sinceMs: this.#options.now() });
    forgetOldest(this.#seen);
  }

  async #write(): Promise<void> {
    const { link, broker } = this.#options;
    const name = nameOf(broker);
    const publish = { parts: this.#beat, claim: null, creates: false, ifHead: null };
    try {
      await link.ask('publish', { name, publish });
      this.#writtenAtMs = this.#options.now();
    } catch (error) {
      if (!(error instanceof RequestError)) throw error;
      if (error.code === 'stream_not_found') await this.#asked(link.ask('put', { name, config: CONFIG }));
    }
  }

  /** What the log cannot do now is done later, or by time. */
  async #asked(asked: Promise<unknown>): Promise<void> {
    await asked.catch((error: unknown) => {
      if (!(error instanceof RequestError)) throw error;
    });
  }
}

function forgetOldest(brokers: Map<string, unknown>): void {
  if (brokers.size <= SEEN_MAX) return;
  const [oldest] = brokers.keys();
  brokers.delete(oldest as string);
}

function nameOf(broker: string): string {
  return `${OWN_STREAMS_PREFIX}broker-${broker}`;
}
