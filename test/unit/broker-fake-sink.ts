import assert from 'node:assert/strict';
import { type Ending, endingFrame } from '#gapless/broker/ending.js';
import type { Beats, Sink } from '#gapless/broker/subscription.js';
import { HEARTBEAT, idFrame } from '#gapless/core/sse-frame.js';
import { type DispatchedEvent, readEventStream } from '../property/whatwg-event-stream.js';

/** A socket that takes what it is told to take, and holds the broker to the rules of writing. */
export class FakeSink implements Sink {
  beats: Beats = 'quiet';
  /** Whether a write is taken whole; when not, the sink is blocked until `drain`. */
  takes = true;
  /** Called with each write, while it happens; may change what it answers. */
  onWrite: () => void = () => {};
  /** What was written, one text a write. */
  readonly writes: string[] = [];
  /** How it ended: 'end', 'cut', or not yet. */
  readonly endings: ('end' | 'cut')[] = [];
  lastFrame: string | null = null;
  blocked = false;

  write(frames: Uint8Array | string): boolean {
    assert.equal(this.endings.length, 0, 'nothing is written after the end');
    assert.equal(this.blocked, false, 'I7: nothing is written after false until the sink has drained');
    assert.ok(frames.length > 0, 'a write has something to say');
    this.writes.push(Buffer.from(frames).toString());
    this.onWrite();
    this.blocked = !this.takes;
    return this.takes;
  }

  beat(cursor: string, isNews: boolean): boolean {
    return this.write(isNews ? idFrame(cursor) : HEARTBEAT);
  }

  end(ending: Ending): void {
    this.endings.push('end');
    this.lastFrame = endingFrame(ending);
  }

  cut(): void {
    this.endings.push('cut');
  }

  /** The events as an `EventSource` would dispatch them; a last frame is not among them. */
  get events(): readonly DispatchedEvent[] {
    return readEventStream(Buffer.from(this.writes.join(''))).events;
  }

  get seqs(): number[] {
    return this.events.map(({ lastEventId }) => Number(lastEventId.split('.')[1]));
  }

  get texts(): string[] {
    return this.events.map(({ data }) => data);
  }

  /** The last frame as an event. */
  get lastEvent(): DispatchedEvent | undefined {
    return readEventStream(Buffer.from(this.lastFrame ?? '')).events[0];
  }
}
