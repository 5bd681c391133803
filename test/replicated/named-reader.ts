import assert from 'node:assert/strict';
import { setTimeout as delay } from 'node:timers/promises';
import { cursorOf, positionOf } from '../support/cursor.js';
import type { Problem } from '../support/gapless-client.js';
import type { HttpResponse } from '../support/http.js';
import { askAcknowledgement } from '../support/named-subscriber.js';
import type { Prng } from '../support/prng.js';
import { SseSubscription } from '../support/sse-client.js';

const EVENTS_MAX = 100;
const PAUSE_MS = 20;
/** A broker that has not answered by then may be stopped: the reader goes to another. */
const PATIENCE_MS = 3000;
const STILL_MS_MAX = 30_000;

/**
 * A named subscriber who goes from broker to broker and has no cursor of its own: wherever it comes it has to be given
 * what follows the newest that it is known to have, which is what it was told last, or said since without an answer.
 */
export class NamedReader {
  acknowledgements = 0;
  readonly #options: { prng: Prng; ports: () => readonly number[]; stream: string; name: string };
  #epoch = '';
  #hasJoined = false;
  /** The newest that it was told it has, and the newest that it said it has. */
  #told = 0;
  #said = 0;
  #until = Number.POSITIVE_INFINITY;
  #work: Promise<unknown> = Promise.resolve();

  constructor(options: { prng: Prng; ports: () => readonly number[]; stream: string; name: string }) {
    this.#options = options;
  }

  begin(): void {
    this.#work = this.#read();
    // Whoever waits reports it; until then nothing is unhandled.
    this.#work.catch(() => undefined);
  }

  /** Resolves when it has acknowledged so much: it may have far to go, but must not stand still. */
  async end(head: number): Promise<void> {
    this.#until = head;
    while (this.#told < head) {
      const before = this.#told;
      await Promise.race([this.#work, delay(STILL_MS_MAX, null, { ref: false })]);
      assert.ok(this.#told > before, `${this.#options.name} stands still at ${before} of ${head}`);
    }
    await this.#work;
  }

  /** Lets go of everything as it is, so that a test that failed ends. */
  abandon(): void {
    this.#until = 0;
  }

  get #port(): number {
    return this.#options.prng.pick(this.#options.ports());
  }

  async #read(): Promise<void> {
    while (this.#told < this.#until) {
      const seen = await this.#readOnce();
      if (seen !== null) await this.#acknowledge(seen);
      await delay(PAUSE_MS);
    }
  }

  /** One connection. @returns the newest that it was given; null: nothing. */
  async #readOnce(): Promise<number | null> {
    const { prng, stream, name } = this.#options;
    const cutAfter = prng.between(1, EVENTS_MAX);
    const query = `subscriber=${name}`;
    const seqs: number[] = [];
    const opened = SseSubscription.ask(this.#port, stream, {
      ...(this.#hasJoined ? { query } : { cursor: 'earliest', query }),
      keepEvents: false,
      onEvent: (event, from) => {
        seqs.push(positionOf(event.id).seq);
        if (seqs.length === cutAfter) from.cut();
      },
    }).catch(() => null);
    const subscription = await Promise.race([opened, delay(PATIENCE_MS, null)]);
    if (subscription === null) {
      void opened.then((late) => late?.cut());
      return null;
    }
    if (subscription.status !== 200) {
      mustBeTemporary(await subscription.refusal());
      return null;
    }
    this.#epoch = subscription.header('gapless-epoch') ?? '';
    await Promise.race([subscription.ended, delay(PATIENCE_MS / 10)]);
    subscription.cut();
    const [first] = seqs;
    if (first === undefined) return null;
    const [least, most] = this.#hasJoined ? [this.#told + 1, this.#said + 1] : [1, 1];
    assert.ok(first >= least && first <= most, `${name} begins at ${first}, not at ${least} to ${most}`);
    for (const [index, seq] of seqs.entries()) assert.equal(seq, first + index, name);
    this.#hasJoined = true;
    return seqs.at(-1) ?? null;
  }

  async #acknowledge(seq: number): Promise<void> {
    const { stream, name } = this.#options;
    this.#said = Math.max(this.#said, seq);
    const asked = askAcknowledgement(this.#port, stream, {
      subscriber: name,
      cursor: cursorOf(this.#epoch, seq),
    }).catch(() => null);
    const response = await Promise.race([asked, delay(PATIENCE_MS, null)]);
    if (response === null) return;
    if (response.status !== 200) return mustBeTemporary(response);
    const acked = positionOf(response.json<{ acked: string }>().acked).seq;
    const least = Math.max(seq, this.#told);
    assert.ok(
      acked >= least && acked <= this.#said,
      `${name} is at ${acked}, not at ${least} to ${this.#said}`,
    );
    this.#told = acked;
    this.acknowledgements++;
  }
}

function mustBeTemporary(response: HttpResponse): void {
  const { code } = response.json<Problem>();
  assert.ok(
    ['log_unavailable', 'commit_unknown', 'draining'].includes(code),
    `${response.status}: ${response.text}`,
  );
}
