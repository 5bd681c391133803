/**
 * A WebSocket on its way into a stream (contract 5.2).
 */

import type { EdgeStream } from '../../broker/edge-stream.js';
import { type EventTypes, type Rendering, typesKey } from '../../broker/rendering.js';
import { formatCursor } from '../../core/cursor.js';
import { lowestReadable, type Start } from '../../core/resume.js';
import type { StreamPositions } from '../../ring/lifecycle.js';
import { encodeEvents, type MessageFormat } from '../../wire/live-message.js';
import type { Caller } from '../admission/limits.js';
import type { EdgeServices } from '../edge-services.js';
import type { NamedEntrant } from '../subscribe/named-subscriber.js';
import { beginAfter, isCursor } from '../subscribe/resume-request.js';
import type { WebSocketSink } from './websocket-sink.js';

export interface WebSocketRequest {
  readonly name: string;
  readonly start: Start;
  readonly types: EventTypes | null;
  readonly caller: Caller;
}

export class WebSocketEntrant implements NamedEntrant {
  readonly name: string;
  start: Start;
  /** A peer that is told in any case still creates nothing by a cursor of what is no more. */
  readonly alwaysCreates = false;
  readonly #edge: EdgeServices;
  readonly #sink: WebSocketSink;
  readonly #rendering: Rendering;
  readonly #caller: Caller;

  constructor(edge: EdgeServices, sink: WebSocketSink, { name, start, types, caller }: WebSocketRequest) {
    this.name = name;
    this.start = start;
    this.#edge = edge;
    this.#sink = sink;
    this.#caller = caller;
    this.#rendering = messageRendering(sink.format, types);
  }

  get isGone(): boolean {
    return !this.#sink.isOpen;
  }

  enter(stream: EdgeStream, at: StreamPositions): void {
    const sink = this.#sink;
    const { activity, broker, counters, limits, sessions } = this.#edge;
    const after = beginAfter(this.start, at, counters);
    const cursor = formatCursor(at.epoch, after);
    if (at.closed && after === at.committed) return sink.end({ kind: 'closed', cursor });
    limits.admitSubscriber(this.#caller, at, after);
    const { principal } = this.#caller;
    if (isCursor(this.start)) activity.resumed({ stream: this.name, principal }, this.start, at);
    const subscription = broker.subscribe(stream, {
      sink,
      cursor: after,
      rendering: this.#rendering,
      tellUnavailable: true,
    });
    sink.attach(subscription);
    sessions.opened(subscription, this.#caller);
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
