/**
 * One WebSocket from its handshake to its end (contract 5): how it gets into its stream, and what it is told where it
 * does not.
 */

import type { WebSocket } from 'uWebSockets.js';
import type { EdgeStream } from '../broker/edge-stream.js';
import { type EventTypes, type Rendering, typesKey } from '../broker/rendering.js';
import { formatCursor } from '../core/cursor.js';
import { lowestReadable } from '../core/resume.js';
import { isStreamName } from '../core/stream-name.js';
import { RequestError } from '../errors.js';
import { Counter } from '../ring/counters.js';
import type { StreamPositions } from '../ring/lifecycle.js';
import { encodeEvents, type MessageFormat } from '../wire/live-message.js';
import type { EdgeServices } from './edge-services.js';
import { type Entrant, enterStream } from './enter-stream.js';
import { Query } from './query.js';
import { beginAfter, readStart, type Start } from './resume-request.js';
import { readTypes, refuseSubscriber } from './subscribe.js';
import { WebSocketSink } from './websocket-sink.js';

/**
 * Bytes that may wait for a peer beside the run that it was given: answers, and the pongs that the library sends by
 * itself. A peer that makes more of them than it takes is cut off.
 */
const ANSWER_BYTES_MAX = 256 * 1024;

/** What the request said; read while the library has it. */
export interface Handshake {
  readonly name: string;
  readonly lastEventId: string;
  readonly query: string | undefined;
  readonly format: MessageFormat;
}

export class WebSocketConnection {
  readonly #edge: EdgeServices;
  readonly #handshake: Handshake;
  #sink: WebSocketSink | null = null;

  constructor(edge: EdgeServices, handshake: Handshake) {
    this.#edge = edge;
    this.#handshake = handshake;
  }

  async opened(ws: WebSocket<unknown>): Promise<void> {
    const { format } = this.#handshake;
    const sink = new WebSocketSink(ws, format, this.#edge.broker);
    this.#sink = sink;
    try {
      await enterStream(this.#edge, new WebSocketEntrant(this.#edge, this.#handshake, sink));
    } catch (error) {
      // What is no RequestError is a fault of ours.
      if (!(error instanceof RequestError)) throw error;
      this.#edge.counters.add(Counter.requestErrors, 1);
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
  pinged(ws: WebSocket<unknown>): void {
    if (ws.getBufferedAmount() > this.#edge.config.writeBytesMax + ANSWER_BYTES_MAX) this.#sink?.cut();
  }
}

class WebSocketEntrant implements Entrant {
  readonly name: string;
  readonly start: Start;
  /** A peer that is told in any case still creates nothing by a cursor of what is no more. */
  readonly alwaysCreates = false;
  readonly #edge: EdgeServices;
  readonly #sink: WebSocketSink;
  readonly #rendering: Rendering;

  /** @throws {RequestError} for a request that nobody could answer */
  constructor(edge: EdgeServices, { name, lastEventId, query, format }: Handshake, sink: WebSocketSink) {
    if (!isStreamName(name)) throw new RequestError('invalid_stream_name');
    const parameters = new Query(query);
    refuseSubscriber(parameters);
    this.name = name;
    this.start = readStart(lastEventId, parameters.get('cursor'), edge.counters);
    this.#edge = edge;
    this.#sink = sink;
    this.#rendering = messageRendering(format, readTypes(parameters.get('types')));
  }

  get isGone(): boolean {
    return !this.#sink.isOpen;
  }

  enter(stream: EdgeStream, at: StreamPositions): void {
    const sink = this.#sink;
    const { broker, counters } = this.#edge;
    const after = beginAfter(this.start, at, counters);
    const cursor = formatCursor(at.epoch, after);
    if (at.closed && after === at.committed) return sink.end({ kind: 'closed', cursor });
    const subscription = broker.subscribe(stream, {
      sink,
      cursor: after,
      rendering: this.#rendering,
      tellUnavailable: true,
    });
    sink.attach(subscription);
    const { epoch, committed } = at;
    const taken = sink.say({ kind: 'open', cursor, epoch, floor: lowestReadable(at), head: committed });
    broker.start(subscription, taken);
  }
}

function messageRendering(format: MessageFormat, types: EventTypes | null): Rendering {
  return {
    key: types === null ? format : `${format}:${typesKey(types)}`,
    filters: types !== null,
    render: (frames, epoch) => encodeEvents(format, frames, epoch, types),
  };
}
