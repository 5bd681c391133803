/**
 * GET /v1/streams?prefix=orders- with `Accept: text/event-stream` (contract 4.11): from a request to a connection.
 */

import { identityOf } from '../../auth/principal.js';
import type { EdgeStream, StreamRef } from '../../broker/edge-stream.js';
import type { Followed } from '../../broker/prefix-cursors.js';
import { type KeptCursor, positionsAt } from '../../core/kept-cursor.js';
import { type PrefixCursor, parsePrefixCursor } from '../../core/prefix-cursor.js';
import type { SentPosition } from '../../core/sent-history.js';
import { isNamePrefix } from '../../core/stream-name.js';
import { RequestError } from '../../errors.js';
import { Counter } from '../../ring/counters.js';
import { refuseWhileDraining } from '../admission/admission.js';
import type { EdgeServices } from '../edge-services.js';
import { SUBSCRIPTION_HEADERS } from '../http/event-stream.js';
import type { Exchange } from '../http/exchange.js';
import type { Query } from '../http/query.js';
import type { RequestView } from '../http/request-view.js';
import {
  type Begun,
  beginOne,
  noteResumes,
  type RefusedStream,
  refusalOf,
  refusedOf,
} from './multi-begin.js';
import { type Beginning, PrefixConnection } from './prefix-connection.js';
import type { Follower } from './prefix-followers.js';
import { refused } from './resume-request.js';
import { readOnUnavailable, readTypes } from './subscribe.js';

interface PrefixSubscribe extends ReturnType<typeof readRequest> {
  readonly prefix: string;
}

export async function subscribeToPrefix(
  exchange: Exchange,
  req: RequestView,
  prefix: string,
  query: Query,
): Promise<void> {
  const { edge } = exchange;
  exchange.stream = `${prefix}*`;
  refuseWhileDraining(edge);
  if (!isNamePrefix(prefix)) throw new RequestError('invalid_stream_name');
  const request = readRequest(edge, req.getHeader('last-event-id'), query);
  exchange.watch();
  await new PrefixEntrant(exchange, { ...request, prefix }).enter();
}

function readRequest(edge: EdgeServices, lastEventId: string, query: Query) {
  if (query.all('stream').length > 0) {
    throw new RequestError('invalid_query', 'prefix: expected no stream beside it');
  }
  if (query.get('subscriber') !== undefined) {
    throw new RequestError('invalid_query', 'subscriber: it is of one stream');
  }
  const cursors = lastEventId !== '' ? [lastEventId] : query.all('cursor');
  if (cursors.length > 1) throw new RequestError('invalid_query', 'cursor: expected one');
  const [given = 'latest'] = cursors;
  const isWord = given === 'earliest' || given === 'latest';
  const start: 'earliest' | 'latest' | PrefixCursor | null = isWord ? given : parsePrefixCursor(given);
  if (start === null) throw refused('malformed', given, null, edge.counters);
  return {
    start,
    /** The cursor as it was given. */
    given,
    types: readTypes(query.get('types')),
    tellUnavailable: readOnUnavailable(query.get('on_unavailable')),
  };
}

/** A request on its way. It holds the cursor from when the coordinator has given it, until its connection does. */
class PrefixEntrant implements Follower {
  readonly #exchange: Exchange;
  readonly #edge: EdgeServices;
  readonly #request: PrefixSubscribe;
  readonly #id: number;
  /** Streams that were made since the coordinator was asked. */
  readonly #late: StreamRef[] = [];
  #connection: PrefixConnection | null = null;
  #isReleased = false;

  constructor(exchange: Exchange, request: PrefixSubscribe) {
    this.#exchange = exchange;
    this.#edge = exchange.edge;
    this.#request = request;
    this.#id = exchange.edge.followers.add(this);
  }

  made(ref: StreamRef): void {
    if (this.#connection !== null) this.#connection.join(ref);
    // One more than there may be is enough to see that there are too many.
    else if (this.#late.length <= this.#edge.config.prefixStreamsMax) this.#late.push(ref);
  }

  release(): void {
    this.#isReleased = true;
    this.#connection?.end();
  }

  /** @throws {RequestError} why it may not, or cannot */
  async enter(): Promise<void> {
    const followed = await this.#ask();
    try {
      if (this.#exchange.done) return this.#handBack(followed, followed.cursor);
      if (!this.#isReleased) return this.#enter(followed);
      // Its subscriber has come back meanwhile.
      this.#handBack(followed, followed.cursor);
      this.#exchange.send(200, SUBSCRIPTION_HEADERS, '');
    } catch (error) {
      this.#handBack(followed, followed.cursor);
      throw error;
    }
  }

  async #ask(): Promise<Followed> {
    const { start, given, prefix } = this.#request;
    const { principal } = this.#exchange;
    const { coordinator, config, counters } = this.#edge;
    try {
      const followed = await coordinator.follow({
        id: this.#id,
        prefix,
        owner: identityOf(principal),
        grant: principal.grant,
        token: typeof start === 'object' ? start.token : null,
      });
      if (followed === 'unknown') throw refused('cursor_unknown', given, null, counters);
      if (followed !== 'too_many_streams') return followed;
      counters.add(Counter.prefixesOverLimit, 1);
      throw new RequestError(
        'invalid_query',
        `prefix: more than ${config.prefixStreamsMax} streams begin so`,
      );
    } catch (error) {
      this.#edge.followers.remove(this.#id);
      throw error;
    }
  }

  #handBack({ token }: Followed, cursor: KeptCursor | null): void {
    this.#edge.followers.remove(this.#id);
    this.#edge.coordinator.handBack({ id: this.#id, token, cursor });
  }

  /** All of it in one turn (I8). */
  #enter(followed: Followed): void {
    const { broker } = this.#edge;
    const streams = followed.refs.flatMap((ref) => broker.streams.adoptCurrent(ref) ?? []);
    for (const stream of streams) broker.expectReader(stream);
    try {
      this.#open(followed, this.#begin(followed, streams));
    } finally {
      for (const stream of streams) broker.releaseReader(stream);
    }
  }

  /** Where each stream begins. @throws {RequestError} `resume_unavailable` */
  #begin({ cursor }: Followed, streams: readonly EdgeStream[]): Beginning {
    const { start, given, tellUnavailable } = this.#request;
    const { broker, counters } = this.#edge;
    const known = typeof start === 'object' && cursor !== null ? positionsAt(cursor, start.count) : null;
    if (typeof start === 'object' && known === null) throw refused('cursor_unknown', given, null, counters);
    const begun: Begun[] = [];
    const ended = new Map<string, SentPosition>();
    const missing = new Map(known);
    for (const stream of streams) {
      const at = broker.positions(stream);
      if (at === null) continue;
      const { name, epoch } = stream;
      const before = known?.get(name);
      missing.delete(name);
      if (before?.ended === true && before.epoch === epoch) {
        ended.set(name, before);
        continue;
      }
      const one = beginOne(this.#edge, stream, at, () => {
        if (typeof start !== 'object') return start;
        // One that the subscriber does not know was made since: all of it is new.
        return before === undefined || before.ended ? { epoch, seq: 0 } : before;
      });
      // Who begins hears nothing of streams that are over.
      const isOver = known === null && at.closed && one.cursor === at.committed;
      if (isOver) ended.set(name, { epoch, seq: one.cursor, ended: true });
      else begun.push(one);
    }
    const refusals = [...refusedOf(begun), ...this.#goneOf(missing)];
    if (refusals.length > 0 && !tellUnavailable) throw refusalOf(given, refusals);
    return { begun, ended, refusals };
  }

  /** Streams whose end the subscriber has not been told, and that are not there: what it missed of them nobody knows. */
  #goneOf(missing: ReadonlyMap<string, SentPosition>): RefusedStream[] {
    return [...missing].flatMap(([name, { epoch, seq, ended }]) =>
      ended
        ? []
        : [{ name, refusal: refused('epoch_changed', `${epoch}.${seq}`, null, this.#edge.counters) }],
    );
  }

  #open(followed: Followed, beginning: Beginning): void {
    const exchange = this.#exchange;
    const { start, prefix, types, tellUnavailable } = this.#request;
    const { principal, address } = exchange;
    const { begun, refusals } = beginning;
    this.#edge.limits.admitFollower(exchange);
    for (const { at, cursor } of begun) this.#edge.limits.admitSubscriber(exchange, at, cursor);
    noteResumes(exchange, begun, refusals, typeof start === 'object');
    exchange.answer(200, SUBSCRIPTION_HEADERS, (res) => {
      const connection = new PrefixConnection(res, this.#edge, {
        ...{ prefix, types, tellUnavailable, principal, address },
        token: followed.token,
        kept: followed.cursor,
        count: typeof start === 'object' ? start.count : 0,
        over: (cursor) => this.#handBack(followed, cursor),
      });
      this.#connection = connection;
      connection.begin(beginning);
      for (const ref of this.#late.splice(0)) connection.join(ref);
    });
  }
}
