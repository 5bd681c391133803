/**
 * When the fan-out runs: once per loop turn, over the streams that have something to do, each in turn, until
 * all is written or the turn's budget is used up. Between turns the edge waits for other threads without
 * blocking its loop.
 */

import type { Wakes } from '../ring/wake-queue.js';
import type { EdgeStream } from './edge-stream.js';
import type { FanOut } from './fan-out.js';

export interface DrainLoopOptions {
  readonly edge: number;
  readonly wakes: Wakes;
  readonly fanOut: FanOut;
  readonly streamInSlot: (slot: number) => EdgeStream | undefined;
  /** Takes the edge's mark off a stream; false when there is more than its readers were given (W1). */
  readonly settle: (stream: EdgeStream) => boolean;
  /** Everybody has read the stream to the end. */
  readonly settled: (stream: EdgeStream) => void;
  /** Runs the callback after the sockets that are ready now have been read. */
  readonly defer: (callback: () => void) => void;
}

export class DrainLoop {
  readonly #options: DrainLoopOptions;
  readonly #active: EdgeStream[] = [];
  /** Slots taken out of the queue and not settled: their bits are set, so nobody queues them meanwhile (W1). */
  readonly #taken = new Set<number>();
  #turnDue = false;
  #waiting = false;
  #tick = 0;
  readonly #turn = () => this.#runTurn();
  readonly #woken = () => {
    this.#waiting = false;
    this.schedule();
  };

  constructor(options: DrainLoopOptions) {
    this.#options = options;
  }

  /** The tick that writes are dated with from now on. */
  set tick(tick: number) {
    this.#tick = tick;
  }

  /** Has the stream drained in the next turn. */
  activate(stream: EdgeStream): void {
    this.#enqueue(stream);
    this.schedule();
  }

  schedule(): void {
    if (this.#turnDue) return;
    this.#turnDue = true;
    this.#options.defer(this.#turn);
  }

  #runTurn(): void {
    this.#turnDue = false;
    const { edge, wakes, fanOut } = this.#options;
    const ticket = wakes.ticket(edge);
    this.#takeQueued();
    fanOut.beginTurn(this.#tick);
    for (let left = this.#active.length; left > 0 && !fanOut.turnIsOver; left--) {
      const stream = this.#active.shift() as EdgeStream;
      // Before draining: whoever becomes ready meanwhile brings the stream back.
      stream.active = false;
      if (!fanOut.drain(stream) || !this.#settle(stream)) this.#enqueue(stream);
    }
    fanOut.endTurn();
    if (this.#active.length > 0) this.schedule();
    else this.#wait(ticket);
  }

  #takeQueued(): void {
    const { edge, wakes, streamInSlot } = this.#options;
    for (let slot = wakes.take(edge); slot >= 0; slot = wakes.take(edge)) {
      const stream = streamInSlot(slot);
      if (stream === undefined) {
        wakes.settle(slot, edge);
        continue;
      }
      this.#taken.add(slot);
      this.#enqueue(stream);
    }
  }

  #enqueue(stream: EdgeStream): void {
    if (stream.active) return;
    stream.active = true;
    this.#active.push(stream);
  }

  /** @returns false when there is more to read. */
  #settle(stream: EdgeStream): boolean {
    const { streamInSlot, settle, settled } = this.#options;
    const current = streamInSlot(stream.slot);
    if (current !== undefined && current !== stream) {
      // The slot has another stream by now, and the news may have been its.
      this.#enqueue(current);
      return true;
    }
    // A stream may be here for a reader's sake, with no news taken; then a bit that is set belongs to a cell that is
    // still queued, and clearing it would have the slot queued twice (W1).
    if (this.#taken.has(stream.slot)) {
      if (!settle(stream)) return false;
      this.#taken.delete(stream.slot);
    }
    settled(stream);
    return true;
  }

  #wait(ticket: number): void {
    if (this.#waiting) return;
    const woken = this.#options.wakes.wait(this.#options.edge, ticket);
    if (woken === null) {
      this.schedule();
      return;
    }
    this.#waiting = true;
    void woken.then(this.#woken);
  }
}
