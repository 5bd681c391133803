import assert from 'node:assert/strict';
import { LIVE_WINDOW_BYTES, LIVE_WINDOW_EVENTS } from '#gapless/ring/ring-memory.js';

/** What a stream is to keep, as a test judges it. */
export interface Limits {
  readonly events: number;
  readonly bytes: number;
}

/** While news is unread, retention leaves a window for live readers, whatever the policy says. */
export function whileUnread({ events, bytes }: Limits): Limits {
  return {
    events: events === 0 ? 0 : Math.max(events, LIVE_WINDOW_EVENTS),
    bytes: bytes === 0 ? 0 : Math.max(bytes, LIVE_WINDOW_BYTES),
  };
}

/** A stream as the list of all frames that it ever had, and the seq from which on they can still be read. */
export class StreamModel {
  floor: number;
  closed = false;
  readonly epoch: string;
  readonly #firstSeq: number;
  readonly #frames: string[] = [];
  /** ends[i]: bytes of the first i + 1 frames. */
  readonly #ends: number[] = [];

  constructor(epoch: string, firstSeq: number) {
    this.epoch = epoch;
    this.floor = firstSeq;
    this.#firstSeq = firstSeq;
  }

  get head(): number {
    return this.#firstSeq + this.#frames.length - 1;
  }

  get keptEvents(): number {
    return this.head - this.floor + 1;
  }

  get keptBytes(): number {
    return this.bytesFrom(this.floor);
  }

  append(texts: readonly string[], type: string | null): void {
    const typeLine = type === null ? '' : `event: ${type}\n`;
    for (const text of texts) {
      const frame = `id: ${this.epoch}.${this.head + 1}\n${typeLine}data: ${text}\n\n`;
      this.#ends.push((this.#ends.at(-1) ?? 0) + frame.length);
      this.#frames.push(frame);
    }
  }

  /** Bytes of the frames from `seq` to the head. */
  bytesFrom(seq: number): number {
    return (this.#ends.at(-1) ?? 0) - this.#start(seq);
  }

  /** Whole frames after a cursor, as many as `bytesMax` holds, or one. */
  runAfter(cursor: number, bytesMax: number): { lastSeq: number; frames: string } {
    let lastSeq = cursor + 1;
    while (lastSeq < this.head && this.#start(lastSeq + 2) - this.#start(cursor + 1) <= bytesMax) lastSeq++;
    const index = cursor + 1 - this.#firstSeq;
    return { lastSeq, frames: this.#frames.slice(index, lastSeq + 1 - this.#firstSeq).join('') };
  }

  /** Takes the floor that the ring has now, if the limits are a reason for all that went (contract 2.1). */
  evictFor(floor: number, limits: Limits): void {
    const before = this.floor;
    this.#moveFloor(floor);
    if (floor === before) return;
    assert.ok(this.isSuperfluous(floor, limits), `nothing below ${floor} is kept for its limits`);
  }

  /** Takes the floor that the ring has now; what went had to make room. */
  evict(floor: number): void {
    this.#moveFloor(floor);
  }

  /** Whether the newest events by one of the limits all lie from `floor` on. */
  isSuperfluous(floor: number, { events, bytes }: Limits): boolean {
    return (events > 0 && this.head - floor + 1 >= events) || (bytes > 0 && this.bytesFrom(floor) >= bytes);
  }

  /** Not above twice a limit, but for the one event that could not go without falling below it. */
  assertWithin({ events, bytes }: Limits): void {
    if (events > 0) assert.ok(this.keptEvents <= 2 * events, `${this.keptEvents} events of ${events}`);
    if (bytes > 0 && this.keptBytes > 2 * bytes) {
      assert.ok(this.bytesFrom(this.floor + 1) < bytes, `${this.keptBytes} bytes of ${bytes}`);
    }
  }

  #moveFloor(floor: number): void {
    assert.ok(floor >= this.floor, 'I9: the floor never goes back');
    assert.ok(floor <= this.head + 1, 'S1: the floor stays at or below head + 1');
    this.floor = floor;
  }

  /** Bytes of all frames before `seq`. */
  #start(seq: number): number {
    return this.#ends[seq - this.#firstSeq - 1] ?? 0;
  }
}
