import assert from 'node:assert/strict';
import { positionOf, range, seqOf } from '../support/cursor.js';
import { createStream, freshStream, MEDIA_TYPES, publish, stateOf } from '../support/gapless-client.js';
import type { SseEvent } from '../support/sse-parser.js';

/** Event `seq` has the type of `seq` modulo their number; `message` is untyped. */
export const TYPES = ['message', 'a', 'b'] as const;
const BATCH_EVENTS = 500;

/**
 * A stream with one publisher, whose events say by their seq what they are: any reader can be held against it without
 * anything being remembered.
 */
export class FilledStream {
  head = 0;

  private constructor(
    readonly port: number,
    readonly name: string,
    readonly epoch: string,
    readonly eventBytes: number,
  ) {}

  /** Creates it, with events of about so many bytes. */
  static async create(
    port: number,
    { eventBytes, config = {} }: { eventBytes: number; config?: object },
  ): Promise<FilledStream> {
    const name = freshStream('filled');
    await createStream(port, name, config);
    const { epoch } = await stateOf(port, name);
    return new FilledStream(port, name, epoch, eventBytes);
  }

  /**
   * Publishes so many events more, in batches, each after the answer to the last. Each has a connection of its own, and a
   * key with which it can be tried once more: one that waits for a busy test is closed as idle.
   */
  async fill(events: number): Promise<void> {
    const end = this.head + events;
    while (this.head < end) {
      const last = Math.min(end, this.head + BATCH_EVENTS);
      const batch = range(this.head + 1, last).map((seq) => ({ type: typeOf(seq), data: this.dataOf(seq) }));
      const tryOnce = () =>
        publish(this.port, this.name, JSON.stringify(batch), MEDIA_TYPES.batch, {
          'Idempotency-Key': `up to ${last}`,
        });
      const published = await tryOnce().catch((error: Error) => {
        if (!error.message.includes('the connection closed')) throw error;
        return tryOnce();
      });
      assert.deepEqual(published, { epoch: this.epoch, first: this.head + 1, last });
      this.head = last;
    }
  }

  /** What one event takes as a frame (contract 4.3), at least and at most. */
  get frameBytesMin(): number {
    return this.eventBytes + `id: ${this.epoch}.1\ndata: \n\n`.length;
  }

  get frameBytesMax(): number {
    return this.frameBytesMin + 'event: a\n'.length + String(this.head).length;
  }

  dataOf(seq: number): string {
    return `event ${seq} `.padEnd(this.eventBytes, '.');
  }

  /** Fails unless these are exactly the events `first` to `last`, or those of them that have the types. */
  assertEvents(
    events: readonly Pick<SseEvent, 'id' | 'type' | 'data'>[],
    { first, last, types = TYPES }: { first: number; last: number; types?: readonly string[] },
  ): void {
    const expected = range(first, last).filter((seq) => types.includes(typeOf(seq)));
    assert.deepEqual(
      events.map(({ id }) => seqOf(id)),
      expected,
    );
    for (const { id, type, data } of events) {
      const { epoch, seq } = positionOf(id);
      assert.equal(epoch, this.epoch);
      assert.equal(type, typeOf(seq));
      assert.equal(data, this.dataOf(seq));
    }
  }
}

export function typeOf(seq: number): string {
  return TYPES[seq % TYPES.length] as string;
}
