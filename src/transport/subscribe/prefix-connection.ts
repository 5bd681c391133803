/**
 * An open subscription by prefix (contract 4.11): a connection over several streams, to which streams come as they are made,
 * and whose position is kept by the server.
 */

import type { HttpResponse } from 'uWebSockets.js';
import { nowhere, type StreamRef } from '../../broker/edge-stream.js';
import type { Ending } from '../../broker/ending.js';
import type { Sink, Subscription } from '../../broker/subscription.js';
import { formatCursor } from '../../core/cursor.js';
import { allows } from '../../core/grant.js';
import { beginConnection, type KeptCursor } from '../../core/kept-cursor.js';
import type { SentHistory, SentPosition } from '../../core/sent-history.js';
import { primingFrame, retryFrame } from '../../core/sse-frame.js';
import { Counter } from '../../ring/counters.js';
import type { EdgeServices } from '../edge-services.js';
import { retryMs } from '../http/retry.js';
import { type Begun, type MultiRequest, type RefusedStream, subscribeOne } from './multi-begin.js';
import { ITSELF, MultiConnection, refusedFrame } from './multi-connection.js';
import { KeptPositions } from './multi-positions.js';

export interface PrefixRequest extends MultiRequest {
  readonly prefix: string;
  readonly token: string;
  /** Null: it is the first connection. */
  readonly kept: KeptCursor | null;
  /** The id that the subscriber comes back with. */
  readonly count: number;
  /** Called once, when nothing is written any more, with what is to be kept. */
  readonly over: (cursor: KeptCursor) => void;
}

/** Where a connection begins: in streams, and in such as are over already, and which are told to be refused. */
export interface Beginning {
  readonly begun: readonly Begun[];
  readonly ended: ReadonlyMap<string, SentPosition>;
  readonly refusals: readonly RefusedStream[];
}

export class PrefixConnection {
  readonly #res: HttpResponse;
  readonly #edge: EdgeServices;
  readonly #request: PrefixRequest;
  #open: { connection: MultiConnection; history: SentHistory } | null = null;

  constructor(res: HttpResponse, edge: EdgeServices, request: PrefixRequest) {
    this.#res = res;
    this.#edge = edge;
    this.#request = request;
  }

  /** Registers all streams, and starts them. */
  begin({ begun, ended, refusals }: Beginning): void {
    const { kept, count, token, over } = this.#request;
    const positions = new Map(ended);
    for (const { stream, cursor } of begun) {
      positions.set(stream.name, { epoch: stream.epoch, seq: cursor, ended: false });
    }
    const { cursor, history } = beginConnection(kept, count, positions);
    const sent = new KeptPositions(token, history);
    const connection = new MultiConnection(this.#res, this.#edge, sent, () => {
      this.#open = null;
      this.#edge.broker.unsubscribe(itself);
      over(cursor);
    });
    this.#open = { connection, history };
    const itself = this.#subscribeItself(connection);
    const tracks = new Map([...history.data.tracks].map(([track, { name }]) => [name, track]));
    const subscriptions = begun.map(({ stream, cursor }) => {
      const index = tracks.get(stream.name) as number;
      return subscribeOne(this.#edge, connection, this.#request, { stream, cursor, index });
    });
    // What is refused is told before any event, and with it where its stream goes on (I2).
    const told = refusals.map(({ name, refusal }) => refusedFrame(name, refusal.problem(), sent.id));
    connection.begin(retryFrame(retryMs(this.#edge)) + primingFrame(sent.id) + told.join(''));
    for (const subscription of subscriptions) {
      if (connection.isOpen) this.#edge.broker.start(subscription, connection.taken);
    }
  }

  /** A stream was made, of whatever name. If it is one of these, it is given from its first event on. */
  join(ref: StreamRef): void {
    const { prefix, principal } = this.#request;
    const { broker } = this.#edge;
    if (!ref.name.startsWith(prefix) || !allows(principal.grant, 'subscribe', ref.name)) return;
    const stream = broker.streams.adoptCurrent(ref);
    if (stream === null || this.#open === null) return;
    const { connection, history } = this.#open;
    if (history.trackOf(stream.name, stream.epoch) !== undefined) return;
    this.#endBefore(connection.subscriptionTo(stream.name));
    if (!connection.isOpen || !this.#hasRoom(history)) return connection.cut();
    broker.expectReader(stream);
    const index = history.join(stream.name, stream.epoch);
    const subscription = subscribeOne(this.#edge, connection, this.#request, { stream, cursor: 0, index });
    broker.start(subscription, connection.taken);
  }

  end(): void {
    this.#open?.connection.end();
  }

  /** The name was given to another stream, which the edge has not yet been told by the one before. */
  #endBefore(subscription: Subscription | undefined): void {
    if (subscription === undefined) return;
    this.#edge.broker.unsubscribe(subscription);
    const cursor = formatCursor(subscription.stream.epoch, subscription.cursor);
    subscription.sink.end({ kind: 'deleted', cursor });
  }

  #hasRoom(history: SentHistory): boolean {
    const { config, broker, counters } = this.#edge;
    if (history.streamCount < config.prefixStreamsMax) return true;
    history.forgetEnded((name, epoch) => broker.streams.known(name)?.epoch === epoch);
    if (history.streamCount < config.prefixStreamsMax) return true;
    counters.add(Counter.prefixesOverLimit, 1);
    return false;
  }

  /** The connection counts, drains and expires as a subscription of its own, and beats, also without any stream. */
  #subscribeItself(connection: MultiConnection): Subscription {
    const options = { cursor: 0, rendering: null, tellUnavailable: false };
    const subscription = this.#edge.broker.subscribe(nowhere(), {
      sink: new OwnSink(connection),
      ...options,
    });
    this.#edge.sessions.opened(subscription, this.#request);
    return subscription;
  }
}

/** The connection as it sees itself: it has no events, and nothing makes it wait. */
class OwnSink implements Sink {
  readonly beats = 'quiet';
  readonly #connection: MultiConnection;

  constructor(connection: MultiConnection) {
    this.#connection = connection;
  }

  write(): boolean {
    return true;
  }

  beat(): boolean {
    if (this.#connection.taken) this.#connection.beat(ITSELF, 0, false);
    return true;
  }

  end(ending: Ending): void {
    this.#connection.ended(null, '', ITSELF, ending);
  }

  cut(): void {
    this.#connection.cut();
  }
}
