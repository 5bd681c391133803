/**
 * One event stream over several streams (contract 4.10, 4.11): a subscription to each, all with the same response. Their
 * cursors together are the connection's position, of which the id of every frame tells.
 *
 * What one of them writes and the socket does not take stalls all: at most one run waits for the peer (I7).
 */

import type { HttpResponse } from 'uWebSockets.js';
import { assert } from '../../assert.js';
import { type Ending, endingFrame } from '../../broker/ending.js';
import type { Sink, Subscription } from '../../broker/subscription.js';
import { eventFrame, HEARTBEAT, idFrame } from '../../core/sse-frame.js';
import { Counter } from '../../ring/counters.js';
import { withIds } from '../../wire/multi-frame.js';
import type { EdgeServices } from '../edge-services.js';
import type { MultiPositions } from './multi-positions.js';

/** The index of who speaks for the connection itself, and writes signs of life where there may be no stream. */
export const ITSELF = -1;

export class MultiConnection {
  readonly #res: HttpResponse;
  readonly #edge: EdgeServices;
  readonly #positions: MultiPositions;
  readonly #over: () => void;
  readonly #subscriptions: Subscription[] = [];
  #open = true;
  #taken = true;
  #id = '';
  /** The position has outgrown an id, after some 34 thousand million events in each of 16 streams: it cannot be told. */
  #isLost = false;

  /** @param over called once, when nothing is written any more. */
  constructor(
    res: HttpResponse,
    edge: EdgeServices,
    positions: MultiPositions,
    over: () => void = () => undefined,
  ) {
    this.#res = res;
    this.#edge = edge;
    this.#positions = positions;
    this.#over = over;
    edge.counters.add(Counter.connectionsInUse, 1);
    res.onAborted(() => this.#closed());
    res.onWritable(() => {
      this.#taken = true;
      for (const subscription of [...this.#subscriptions]) edge.broker.drained(subscription);
      return true;
    });
  }

  get isOpen(): boolean {
    return this.#open;
  }

  /** Whether the socket has taken all that was written. */
  get taken(): boolean {
    return this.#taken;
  }

  /** The open subscription to a stream of this name. */
  subscriptionTo(name: string): Subscription | undefined {
    return this.#subscriptions.find(({ stream }) => stream.name === name);
  }

  add(subscription: Subscription): void {
    this.#subscriptions.push(subscription);
  }

  /** Events of one of the streams, with ids of their own stream. */
  writeEvents(index: number, frames: Uint8Array): boolean {
    const written = this.#write(
      withIds(frames, (seq) => this.#moved(index, seq)),
      index,
    );
    if (this.#isLost) this.cut();
    return written;
  }

  /** One sign of life is enough for all. */
  beat(index: number, seq: number, isNews: boolean): boolean {
    if (isNews) return this.#write(idFrame(this.#moved(index, seq)), index);
    return index === this.#beatingIndex() ? this.#write(HEARTBEAT, index) : this.#taken;
  }

  /** Frames before any event. */
  begin(frames: string): void {
    this.#write(frames, null);
  }

  /** One of the streams is over for this connection. */
  ended(subscription: Subscription | null, name: string, index: number, ending: Ending): void {
    if (!this.#open) return;
    switch (ending.kind) {
      case 'closed':
      case 'deleted': {
        const data = JSON.stringify({ stream: name, cursor: ending.cursor });
        const id = this.#positions.ended(index, ending.kind);
        this.#write(eventFrame(`stream_${ending.kind}`, data, id), index);
        if (subscription !== null) this.#subscriptions.splice(this.#subscriptions.indexOf(subscription), 1);
        if (this.#positions.isFixed && this.#subscriptions.length === 0) this.end();
        return;
      }
      case 'unavailable': {
        // With the head as its position, and all others as they are, the peer comes back and goes on.
        const head = Number(ending.head.slice(ending.head.indexOf('.') + 1));
        return this.end(refusedFrame(name, ending.refusal.problem(), this.#moved(index, head)));
      }
      case 'replaced':
      case 'expired':
      case 'drained':
        return this.end(endingFrame(ending));
    }
  }

  /** Ends the response, properly, and all that is written to it. */
  end(lastFrame = ''): void {
    if (!this.#open) return;
    this.#closed();
    this.#res.cork(() => {
      // An empty chunk would be the last one.
      if (lastFrame !== '') this.#res.write(lastFrame);
      this.#res.end();
    });
  }

  cut(): void {
    if (!this.#open) return;
    this.#closed();
    this.#res.close();
  }

  /** The id of where the peer is when it has this. */
  #moved(index: number, seq: number): string {
    const id = this.#positions.moved(index, seq);
    if (id !== null) this.#id = id;
    else this.#isLost = true;
    return this.#id;
  }

  /** @param writer the index of who writes: the others wait when the socket has not taken it. */
  #write(frames: Uint8Array | string, writer: number | null): boolean {
    if (!this.#open || this.#isLost) return false;
    this.#res.cork(() => {
      this.#taken = this.#res.write(frames);
    });
    if (!this.#taken) {
      for (const subscription of this.#subscriptions) {
        if ((subscription.sink as MultiSink).index !== writer) this.#edge.broker.hold(subscription);
      }
    }
    return this.#taken;
  }

  #beatingIndex(): number {
    const [first] = this.#subscriptions;
    return first === undefined || !this.#positions.isFixed ? ITSELF : (first.sink as MultiSink).index;
  }

  #closed(): void {
    if (!this.#open) return;
    this.#open = false;
    this.#edge.counters.add(Counter.connectionsInUse, -1);
    for (const subscription of this.#subscriptions.splice(0)) this.#edge.broker.unsubscribe(subscription);
    this.#over();
  }
}

/** The connection as one of its streams sees it. */
export class MultiSink implements Sink {
  readonly beats = 'quiet';
  readonly index: number;
  readonly #connection: MultiConnection;
  readonly #name: string;
  #subscription: Subscription | null = null;

  constructor(connection: MultiConnection, name: string, index: number) {
    this.#connection = connection;
    this.#name = name;
    this.index = index;
  }

  attach(subscription: Subscription): void {
    this.#subscription = subscription;
    this.#connection.add(subscription);
  }

  write(frames: Uint8Array | string): boolean {
    assert(typeof frames !== 'string', 'what a stream writes to one of several are events');
    return this.#connection.writeEvents(this.index, frames);
  }

  beat(cursor: string, isNews: boolean): boolean {
    const seq = Number(cursor.slice(cursor.indexOf('.') + 1));
    return this.#connection.beat(this.index, seq, isNews);
  }

  end(ending: Ending): void {
    this.#connection.ended(this.#subscription, this.#name, this.index, ending);
  }

  cut(): void {
    this.#connection.cut();
  }
}

/** A refusal in-band, of one stream; the id is where the peer goes on. */
export function refusedFrame(name: string, problem: Record<string, unknown>, id: string): string {
  return eventFrame('resume_unavailable', JSON.stringify({ stream: name, ...problem }), id);
}
