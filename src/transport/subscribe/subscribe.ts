/**
 * GET /v1/streams/{stream} with `Accept: text/event-stream` (contract 4).
 */

import type { EdgeStream } from '../../broker/edge-stream.js';
import { endingFrame } from '../../broker/ending.js';
import { type EventTypes, typesRendering } from '../../broker/rendering.js';
import { formatCursor } from '../../core/cursor.js';
import { isEventType } from '../../core/event-type.js';
import { lowestReadable, type Start } from '../../core/resume.js';
import { primingFrame, retryFrame } from '../../core/sse-frame.js';
import { RequestError } from '../../errors.js';
import type { StreamPositions } from '../../ring/lifecycle.js';
import { refuseWhileDraining } from '../admission/admission.js';
import { SUBSCRIPTION_HEADERS } from '../http/event-stream.js';
import type { Exchange, Headers } from '../http/exchange.js';
import type { Query } from '../http/query.js';
import type { RequestView } from '../http/request-view.js';
import { retryMs } from '../http/retry.js';
import { enterAs, type NamedEntrant, readSubscriber } from './named-subscriber.js';
import { beginAfter, isCursor, readStart } from './resume-request.js';
import { SseSink } from './sse-sink.js';

/** Types in one filter. */
const TYPES_MAX = 64;

export function subscribe(
  exchange: Exchange,
  req: RequestView,
  name: string,
  query: Query,
): Promise<void> | void {
  const { edge } = exchange;
  refuseWhileDraining(edge);
  const entrant = new SseEntrant(exchange, {
    name,
    start: readStart(req.getHeader('last-event-id'), query.get('cursor'), edge.counters),
    types: readTypes(query.get('types')),
    tellUnavailable: readOnUnavailable(query.get('on_unavailable')),
  });
  return enterAs(edge, entrant, readSubscriber(query));
}

interface Subscribe {
  readonly name: string;
  readonly start: Start;
  readonly types: EventTypes | null;
  readonly tellUnavailable: boolean;
}

/** A request for an event stream, on its way into the stream. */
class SseEntrant implements NamedEntrant {
  readonly name: string;
  start: Start;
  readonly alwaysCreates: boolean;
  readonly #exchange: Exchange;
  readonly #types: EventTypes | null;

  constructor(exchange: Exchange, { name, start, types, tellUnavailable }: Subscribe) {
    this.name = name;
    this.start = start;
    this.alwaysCreates = tellUnavailable;
    this.#exchange = exchange;
    this.#types = types;
  }

  get isGone(): boolean {
    return this.#exchange.done;
  }

  enter(stream: EdgeStream, at: StreamPositions): void {
    const exchange = this.#exchange;
    const { edge } = exchange;
    const cursor = this.#beginAfter(at);
    if (cursor === null) return;
    if (at.closed && cursor === at.committed) {
      exchange.answer(204, { 'Cache-Control': 'no-store', ...positionHeaders(at) }, (res) =>
        res.endWithoutBody(),
      );
      return;
    }
    edge.limits.admitSubscriber(exchange, at, cursor);
    if (isCursor(this.start)) edge.activity.resumed(exchange, this.start, at);
    exchange.answer(200, streamHeaders(at), (res) => {
      const sink = new SseSink(res, edge);
      const rendering = this.#types === null ? null : typesRendering(this.#types);
      const options = { sink, cursor, rendering, tellUnavailable: this.alwaysCreates };
      const subscription = edge.broker.subscribe(stream, options);
      sink.attach(subscription);
      edge.sessions.opened(subscription, exchange);
      const position = formatCursor(stream.epoch, cursor);
      const taken = sink.write(retryFrame(retryMs(edge)) + primingFrame(position));
      edge.broker.start(subscription, taken);
    });
  }

  /** The seq to begin after; null when a refusal was told in-band (contract 4.5). */
  #beginAfter(at: StreamPositions): number | null {
    const { edge } = this.#exchange;
    try {
      return beginAfter(this.start, at, edge.counters);
    } catch (refusal) {
      if (!(refusal instanceof RequestError)) throw refusal;
      if (!this.alwaysCreates) throw refusal;
      edge.refusals.note(this.#exchange, refusal);
      const head = formatCursor(at.epoch, at.committed);
      const last = endingFrame({ kind: 'unavailable', refusal, head });
      this.#exchange.send(200, streamHeaders(at), retryFrame(retryMs(edge)) + last);
      return null;
    }
  }
}

// One literal and no spread: it is made for each subscriber, and all come at once after a restart.
function streamHeaders(at: StreamPositions): Headers {
  return {
    ...SUBSCRIPTION_HEADERS,
    'Gapless-Epoch': at.epoch,
    'Gapless-Floor': String(lowestReadable(at)),
    'Gapless-Head': String(at.committed),
  };
}

/** Where a stream stands, as headers (contract 4.2). */
export function positionHeaders(at: StreamPositions): Headers {
  return {
    'Gapless-Epoch': at.epoch,
    'Gapless-Floor': String(lowestReadable(at)),
    'Gapless-Head': String(at.committed),
  };
}

/** Whether a refusal is to be told in-band (contract 4.5). */
export function readOnUnavailable(value: string | undefined): boolean {
  if (value !== undefined && value !== 'event') {
    throw new RequestError('invalid_query', 'on_unavailable: expected "event"');
  }
  return value === 'event';
}

/** The types of a filter, or null where there is none (contract 4.9). */
export function readTypes(value: string | undefined): EventTypes | null {
  if (value === undefined) return null;
  const types = new Set(value.split(',', TYPES_MAX + 1));
  if (types.size > TYPES_MAX || ![...types].every((type) => type !== '' && isEventType(type))) {
    throw new RequestError('invalid_query', `types: expected 1 to ${TYPES_MAX} event types, comma-separated`);
  }
  return types;
}
