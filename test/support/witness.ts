import assert from 'node:assert/strict';
import type { SuiteBroker } from './broker-process.js';
import { range } from './cursor.js';
import { freshStream, publishLines, readAll, stateOf } from './gapless-client.js';
import { SseSubscription } from './sse-client.js';

const EVENTS = 10;

/** A stream with ten events and a subscriber on it: whatever else happens to the broker, these see nothing of it. */
export class Witness {
  #head = EVENTS;

  private constructor(
    readonly broker: SuiteBroker,
    readonly stream: string,
    readonly epoch: string,
    readonly subscription: SseSubscription,
  ) {}

  static async start(broker: SuiteBroker): Promise<Witness> {
    const stream = freshStream('witness');
    const { epoch } = await publishLines(broker.port, stream, range(1, EVENTS).map(contentOf));
    const subscription = await SseSubscription.open(broker.port, stream, { cursor: 'earliest' });
    await subscription.untilEvents(EVENTS);
    return new Witness(broker, stream, epoch, subscription);
  }

  /** Nothing has changed, one event more arrives, and the broker has not complained. */
  async check(): Promise<void> {
    const { broker, stream, epoch, subscription } = this;
    const { epoch: now, floor, committed, head } = await stateOf(broker.port, stream);
    assert.deepEqual([now, floor, committed, head], [epoch, 1, this.#head, this.#head]);
    const contents = (await readAll(broker.port, stream)).map(({ data }) => data);
    assert.deepEqual(contents, range(1, this.#head).map(contentOf));
    await publishLines(broker.port, stream, [contentOf(++this.#head)]);
    await subscription.untilEvents(this.#head);
    assert.deepEqual(subscription.seqs, range(1, this.#head));
    assert.ok(broker.process.isRunning);
    assert.deepEqual(broker.process.errors, []);
  }

  /** Checks for the last time. */
  async end(): Promise<void> {
    await this.check();
    this.subscription.cut();
  }
}

function contentOf(seq: number): string {
  return `event ${seq}`;
}
