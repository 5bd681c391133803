/**
 * One WebSocket from its handshake to its end (contract 5): how it gets into its stream, what it is told where it does
 * not, and what its peer says.
 */

import type { WebSocket } from 'uWebSockets.js';
import { ANYBODY, type Principal } from '../../auth/principal.js';
import { parseCursor } from '../../core/cursor.js';
import { isStreamName } from '../../core/stream-name.js';
import { RequestError } from '../../errors.js';
import { Counter } from '../../ring/counters.js';
import { type ClientMessage, decodeClientMessage } from '../../wire/client-message.js';
import type { LiveMessage, MessageFormat } from '../../wire/live-message.js';
import type { Caller } from '../admission/limits.js';
import type { EdgeServices } from '../edge-services.js';
import { Query } from '../http/query.js';
import { enterAs, readCursor, readSubscriber } from '../subscribe/named-subscriber.js';
import { readStart } from '../subscribe/resume-request.js';
import { readTypes } from '../subscribe/subscribe.js';
import { Confirmations } from './confirmations.js';
import { WebSocketEntrant } from './websocket-entrant.js';
import { PublishMessage } from './websocket-publish.js';
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
  /** Finds out who asked. Rejects with what is wrong with the credential. */
  readonly identify: () => Promise<Principal>;
  readonly address: Caller['address'];
}

export class WebSocketConnection {
  readonly #edge: EdgeServices;
  readonly #handshake: Handshake;
  #ws: WebSocket<unknown> | null = null;
  #sink: WebSocketSink | null = null;
  /** Null until it is known who asked. */
  #caller: Caller | null = null;
  /** Null: the subscription has no name. */
  #subscriber: string | null = null;
  #confirmations: Confirmations | null = null;
  /** Bytes of answers since the library's buffer was last seen empty. */
  #answeredBytes = 0;
  #asked = 0;
  /** Of those that wait for the subscription to begin. */
  #heldBytes = 0;
  readonly #publishes = new Set<PublishMessage>();
  /** Null before, and once the subscription has begun or cannot. */
  #entering: Promise<void> | null = null;

  constructor(edge: EdgeServices, handshake: Handshake) {
    this.#edge = edge;
    this.#handshake = handshake;
  }

  async opened(ws: WebSocket<unknown>): Promise<void> {
    const sink = new WebSocketSink(ws, this.#handshake.format, this.#edge.broker);
    this.#ws = ws;
    this.#sink = sink;
    const entering = this.#enter(sink);
    // Those that wait for it go on in the order in which they came, before any that comes later.
    this.#entering = entering
      .catch(() => undefined)
      .then(() => {
        this.#entering = null;
      });
    try {
      await entering;
    } catch (error) {
      // What is no RequestError is a fault of ours.
      if (!(error instanceof RequestError)) throw error;
      this.#edge.counters.add(Counter.requestErrors, 1);
      this.#note(error);
      sink.refuse(error);
    }
  }

  drained(): void {
    this.#sink?.drained();
  }

  closed(): void {
    this.#sink?.closed();
    for (const publish of this.#publishes) publish.abandon();
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
    this.#edge.counters.add(Counter.messages, 1);
    let ref: ClientMessage['ref'] = null;
    try {
      const decoded = decodeClientMessage(this.#handshake.format, message);
      ref = decoded.ref;
      await this.#do(decoded, message.length);
    } catch (error) {
      if (!(error instanceof RequestError)) throw error;
      this.#refuse(ref, error);
    }
  }

  async #enter(sink: WebSocketSink): Promise<void> {
    const { name, lastEventId, query, identify, address } = this.#handshake;
    const caller = { principal: await identify(), address };
    this.#caller = caller;
    if (!sink.isOpen) return;
    this.#edge.access.require(caller.principal, 'subscribe', name);
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
    await enterAs(this.#edge, entrant, subscriber);
  }

  async #do({ ref, members }: ClientMessage, bytes: number): Promise<void> {
    const kind = members.get('kind');
    if (kind !== 'ack' && kind !== 'publish') {
      throw new RequestError('invalid_body', 'kind: expected "ack" or "publish"');
    }
    this.#askOne();
    try {
      if (this.#entering !== null) await this.#hold(bytes);
      if (kind === 'ack') return this.#answer(ref, await this.#acknowledge(members.get('cursor')));
      await this.#publish(ref, members);
    } finally {
      this.#asked--;
    }
  }

  #askOne(): void {
    if (this.#asked >= ASKED_MAX) throw this.#tooMany({ limit: ASKED_MAX });
    this.#asked++;
  }

  /** Until the subscription has begun: nobody is known before, and nothing to publish to. */
  async #hold(bytes: number): Promise<void> {
    const { bodyBytesMax } = this.#edge.config;
    if (this.#heldBytes + bytes > bodyBytesMax) throw this.#tooMany({ limitBytes: bodyBytesMax });
    this.#heldBytes += bytes;
    await this.#entering;
    this.#heldBytes -= bytes;
  }

  #tooMany(limit: Readonly<Record<string, number>>): RequestError {
    this.#edge.counters.add(Counter.messagesRefused, 1);
    return new RequestError('too_many_messages', undefined, limit);
  }

  async #acknowledge(cursor: unknown): Promise<LiveMessage> {
    const { name } = this.#handshake;
    if (this.#subscriber === null) {
      throw new RequestError('subscriber_not_found', 'this subscription has no name');
    }
    const acked = await this.#edge.coordinator.acknowledge(name, this.#subscriber, readCursor(cursor));
    if (acked === null) throw new RequestError('stream_not_found');
    return { kind: 'acked', cursor: acked };
  }

  /** Resolves when it was answered. */
  #publish(ref: ClientMessage['ref'], members: ClientMessage['members']): Promise<void> | void {
    const caller = this.#caller;
    if (this.#sink?.isOpen !== true || caller === null) return;
    const { name, format } = this.#handshake;
    let isAnswered = false;
    let settle = (): void => undefined;
    const answered = (answer: LiveMessage | RequestError): void => {
      isAnswered = true;
      this.#publishes.delete(publish);
      if (answer instanceof RequestError) this.#refuse(ref, answer);
      else this.#answer(ref, answer);
      settle();
    };
    const publish = new PublishMessage(this.#edge, { name, caller, format, members, answered });
    publish.append(this.#sink.subscription?.stream ?? null);
    if (isAnswered) return;
    this.#publishes.add(publish);
    return new Promise((resolve) => {
      settle = resolve;
    });
  }

  /** What is wrong with a message; the connection goes on. */
  #refuse(ref: ClientMessage['ref'], error: RequestError): void {
    this.#edge.counters.add(Counter.requestErrors, 1);
    const request = this.#note(error);
    const seconds = error.headers['Retry-After'];
    const retry = seconds === undefined ? {} : { retryAfter: Number(seconds) };
    this.#answer(ref, { kind: 'error', ...error.problem(), ...retry, request });
  }

  #note(error: RequestError): string {
    const principal = this.#caller?.principal ?? ANYBODY;
    return this.#edge.refusals.note({ principal, stream: this.#handshake.name }, error);
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
