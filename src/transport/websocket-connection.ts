/**
 * One WebSocket from its handshake to its end (contract 5): how it gets into its stream, what it is told where it does
 * not, and what its peer says.
 */

import type { WebSocket } from 'uWebSockets.js';
import { parseCursor } from '../core/cursor.js';
import { isStreamName } from '../core/stream-name.js';
import { RequestError } from '../errors.js';
import { Counter } from '../ring/counters.js';
import { type ClientMessage, decodeClientMessage } from '../wire/client-message.js';
import type { LiveMessage, MessageFormat } from '../wire/live-message.js';
import { Confirmations } from './confirmations.js';
import type { EdgeServices } from './edge-services.js';
import type { Caller } from './limits.js';
import { enterAs, readCursor, readSubscriber } from './named-subscriber.js';
import { Query } from './query.js';
import { readStart } from './resume-request.js';
import { readTypes } from './subscribe.js';
import { WebSocketEntrant } from './websocket-entrant.js';
import { WebSocketSink } from './websocket-sink.js';

/**
 * Bytes that may wait for a peer beside the run that it was given: answers, and the pongs that the library sends by
 * itself. A peer that makes more of them than it takes is cut off (I7).
 */
const ANSWER_BYTES_MAX = 256 * 1024;
/** Of a frame beside its payload, at most, from the server. */
const FRAME_HEADER_BYTES = 10;
/** Messages of a peer that wait for their answers. */
const ASKED_MAX = 64;

/** What the request said; read while the library has it. */
export interface Handshake {
  readonly name: string;
  readonly lastEventId: string;
  readonly query: string | undefined;
  readonly format: MessageFormat;
  readonly caller: Caller;
}

export class WebSocketConnection {
  readonly #edge: EdgeServices;
  readonly #handshake: Handshake;
  #ws: WebSocket<unknown> | null = null;
  #sink: WebSocketSink | null = null;
  /** Null: the subscription has no name. */
  #subscriber: string | null = null;
  #confirmations: Confirmations | null = null;
  /** Bytes of answers since the library's buffer was last seen empty. */
  #answeredBytes = 0;
  #asked = 0;

  constructor(edge: EdgeServices, handshake: Handshake) {
    this.#edge = edge;
    this.#handshake = handshake;
  }

  async opened(ws: WebSocket<unknown>): Promise<void> {
    const sink = new WebSocketSink(ws, this.#handshake.format, this.#edge.broker);
    this.#ws = ws;
    this.#sink = sink;
    try {
      await this.#enter(sink);
    } catch (error) {
      // What is no RequestError is a fault of ours.
      if (!(error instanceof RequestError)) throw error;
      this.#edge.counters.add(Counter.requestErrors, 1);
      const { caller, name } = this.#handshake;
      this.#edge.refusals.note({ principal: caller.principal, stream: name }, error);
      sink.refuse(error);
    }
  }

  drained(): void {
    this.#sink?.drained();
  }

  closed(): void {
    this.#sink?.closed();
  }

  /** After the library has answered a ping by itself. */
  pinged(payloadBytes: number): void {
    this.#answered(payloadBytes);
  }

  /** The peer has all that was written before the ping that it echoes. */
  ponged(payload: string): void {
    const subscription = this.#sink?.subscription;
    const cursor = parseCursor(payload);
    if (this.#confirmations === null || subscription == null || cursor === null) return;
    // It may send a pong that answers no ping of ours; what it was not given it cannot have.
    if (cursor.epoch === subscription.stream.epoch && cursor.seq <= subscription.cursor) {
      this.#confirmations.confirm(cursor);
    }
  }

  async said(message: Uint8Array): Promise<void> {
    let ref: ClientMessage['ref'] = null;
    try {
      const decoded = decodeClientMessage(this.#handshake.format, message);
      ref = decoded.ref;
      this.#answer(ref, await this.#do(decoded));
    } catch (error) {
      if (!(error instanceof RequestError)) throw error;
      this.#edge.counters.add(Counter.requestErrors, 1);
      this.#answer(ref, { kind: 'error', ...error.problem() });
    }
  }

  #enter(sink: WebSocketSink): Promise<void> | void {
    const { name, lastEventId, query, caller } = this.#handshake;
    if (!isStreamName(name)) throw new RequestError('invalid_stream_name');
    const parameters = new Query(query);
    const subscriber = readSubscriber(parameters);
    const entrant = new WebSocketEntrant(this.#edge, sink, {
      name,
      start: readStart(lastEventId, parameters.get('cursor'), this.#edge.counters),
      types: readTypes(parameters.get('types')),
      caller,
    });
    if (subscriber !== null) {
      this.#subscriber = subscriber;
      this.#confirmations = new Confirmations((cursor) =>
        this.#edge.coordinator.acknowledge(name, subscriber, cursor),
      );
      sink.beats = 'moved';
    }
    return enterAs(this.#edge, entrant, subscriber);
  }

  async #do(message: ClientMessage): Promise<LiveMessage> {
    if (this.#asked >= ASKED_MAX)
      throw new RequestError('too_many_messages', undefined, { limit: ASKED_MAX });
    this.#asked++;
    try {
      return await this.#acknowledge(message);
    } finally {
      this.#asked--;
    }
  }

  async #acknowledge({ cursor }: ClientMessage): Promise<LiveMessage> {
    const { name } = this.#handshake;
    if (this.#subscriber === null) {
      throw new RequestError('subscriber_not_found', 'this subscription has no name');
    }
    const acked = await this.#edge.coordinator.acknowledge(name, this.#subscriber, readCursor(cursor));
    if (acked === null) throw new RequestError('stream_not_found');
    return { kind: 'acked', cursor: acked };
  }

  #answer(ref: ClientMessage['ref'], message: LiveMessage): void {
    const sink = this.#sink;
    if (sink?.isOpen !== true) return;
    this.#answered(sink.answer(ref === null ? message : { ...message, ref }));
  }

  #answered(bytes: number): void {
    if (this.#sink?.isOpen !== true || this.#ws === null) return;
    const isEmpty = this.#ws.getBufferedAmount() === 0;
    this.#answeredBytes = isEmpty ? 0 : this.#answeredBytes + FRAME_HEADER_BYTES + bytes;
    if (this.#answeredBytes > ANSWER_BYTES_MAX) this.#sink.cut();
  }
}
