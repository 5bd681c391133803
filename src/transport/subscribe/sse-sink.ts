/**
 * A subscriber's SSE response as a sink. The library never refuses a write: what the kernel does not take it
 * buffers without bound, and says so by returning false. So nothing is written after that until it reports
 * that its buffer is empty (I7).
 *
 * Hot path: `write` allocates nothing. There are as many of these as connections, so they hold little.
 */

import type { HttpResponse } from 'uWebSockets.js';
import { type Ending, endingFrame } from '../../broker/ending.js';
import type { Sink, Subscription } from '../../broker/subscription.js';
import { HEARTBEAT, idFrame } from '../../core/sse-frame.js';
import { Counter } from '../../ring/counters.js';
import type { EdgeServices } from '../edge-services.js';

// Handed to `corkedWrite` by assignment: a closure per write would be garbage per write.
let response: HttpResponse;
let chunk: Uint8Array | string;
let taken = false;

// Uncorked, one write is three system calls.
function corkedWrite(): void {
  taken = response.write(chunk);
}

export class SseSink implements Sink {
  readonly #res: HttpResponse;
  readonly #edge: EdgeServices;
  #subscription: Subscription | null = null;
  #open = true;
  /** Registered on the first stall: most connections never have one. */
  #watchesWritable = false;
  readonly #endingFrame: (ending: Ending) => string;

  /** @param lastFrame what is written before the end; empty: nothing. */
  constructor(res: HttpResponse, edge: EdgeServices, lastFrame: (ending: Ending) => string = endingFrame) {
    this.#endingFrame = lastFrame;
    this.#res = res;
    this.#edge = edge;
    edge.counters.add(Counter.connectionsInUse, 1);
    // Bound, which takes half of what a closure and its context do.
    res.onAborted(this.#closed.bind(this));
  }

  /** Nobody answers a comment. */
  get beats(): 'quiet' {
    return 'quiet';
  }

  /** False once the peer is gone. */
  get isOpen(): boolean {
    return this.#open;
  }

  attach(subscription: Subscription): void {
    this.#subscription = subscription;
  }

  write(frames: Uint8Array | string): boolean {
    if (!this.#open) return false;
    response = this.#res;
    chunk = frames;
    this.#res.cork(corkedWrite);
    if (!taken && this.#open) this.#watchWritable();
    return taken;
  }

  beat(cursor: string, isNews: boolean): boolean {
    return this.write(isNews ? idFrame(cursor) : HEARTBEAT);
  }

  end(ending: Ending): void {
    if (!this.#open) return;
    this.#leave();
    // Two steps: asked to close as well, the library would put a header into the middle of the chunked body.
    this.#res.cork(() => {
      const last = this.#endingFrame(ending);
      // An empty chunk would be the last one.
      if (last !== '') this.#res.write(last);
      this.#res.end();
    });
  }

  cut(): void {
    if (!this.#open) return;
    this.#leave();
    this.#res.close();
  }

  #watchWritable(): void {
    if (this.#watchesWritable) return;
    this.#watchesWritable = true;
    this.#res.onWritable(() => {
      if (this.#subscription !== null) this.#edge.broker.drained(this.#subscription);
      return true;
    });
  }

  #closed(): void {
    this.#leave();
    if (this.#subscription !== null) this.#edge.broker.unsubscribe(this.#subscription);
  }

  /** Once, whoever ends it. */
  #leave(): void {
    if (!this.#open) return;
    this.#open = false;
    this.#edge.counters.add(Counter.connectionsInUse, -1);
  }
}
