/**
 * Calls of 2026-07-28 that outlive the connection that asked for them, where the setting says so (contract 12.12): the
 * answer goes on into its stream, and is read again after an id of it, or by the same request with the same
 * `Idempotency-Key`. What nobody has come back to for long enough is cancelled, or forgotten.
 */

import { createHash } from 'node:crypto';
import type { StreamRef } from '../../broker/edge-stream.js';
import { formatCursor } from '../../core/cursor.js';
import { NOTHING_MORE, refusal, TAKEN_OVER } from '../answers.js';
import { EventIds, type EventPosition } from '../event-id.js';
import { FrontCount, type FrontCounts } from '../front-counts.js';
import { BAD_REQUEST, LIMIT_REACHED } from '../json-rpc.js';
import type { ClientRequest, Verdict, WholeAnswer } from '../messages.js';
import type { Readers } from '../readers.js';
import { findAnswered } from '../stream/answered-streams.js';
import type { Backlog } from '../stream/backlog.js';
import type { McpStreams } from '../stream/mcp-streams.js';
import { MessageStream } from '../stream/message-stream.js';
import { follow, lostStream } from '../stream/stream-verdicts.js';
import type { StatelessCall } from './stateless-call.js';

const KEY_LENGTH_MAX = 255;
/** There are no sessions, and clients know ids without a message. */
export const DURABLE_READER = { id: '', primes: true, capabilities: [] };

export interface DurableCallsOptions {
  readonly streams: McpStreams;
  readonly backlog: Backlog;
  readonly readers: Readers;
  readonly ids: EventIds;
  readonly counts: FrontCounts;
  /** How long a call goes on, and its answer is kept, while nobody is there, milliseconds. */
  readonly responseGraceMs: number;
  /** Calls that are kept at a time. */
  readonly durableCallsMax: number;
  readonly now: () => number;
}

/** A call, from its request until it is forgotten. */
export interface DurableCall {
  /** Null: another process has made it. */
  readonly call: StatelessCall | null;
  /** What its ids are bound to: no session has such a name. */
  readonly scope: { readonly session: string; readonly principal: string };
  /** Name and digest of a request that may be repeated; null: it may not. */
  readonly repeatable: { readonly name: string; readonly digest: string } | null;
  /** Connections that wait for the answer to begin. */
  awaiting: number;
  /** What it is answered with, when the answer begins. */
  outcome: Promise<MessageStream | WholeAnswer> | null;
  hasBegun: boolean;
  stream: MessageStream | null;
  usedAtMs: number;
}

interface Reading {
  readonly afterSeq: number;
  readonly request: ClientRequest;
}

export class DurableCalls {
  readonly #options: DurableCallsOptions;
  /** Oldest first. */
  readonly #calls = new Set<DurableCall>();
  readonly #byKey = new Map<string, DurableCall>();
  readonly #byName = new Map<string, DurableCall>();
  /** By the connections that wait for an answer to begin; bounded by the edges'. */
  readonly #awaited = new Map<number, DurableCall>();

  constructor(options: DurableCallsOptions) {
    this.#options = options;
  }

  /** @returns the answer to a request that was made before; null: it was not made before. */
  async repeated(request: ClientRequest, body: Uint8Array): Promise<Verdict | null> {
    const key = request.forwarded['idempotency-key'];
    if (key === undefined) return null;
    if (key.length > KEY_LENGTH_MAX) return refusal(400, BAD_REQUEST, 'Idempotency-Key is too long');
    const known = this.#byName.get(nameOf(request, key));
    if (known === undefined) return null;
    if (known.repeatable?.digest !== digestOf(body)) {
      return refusal(422, BAD_REQUEST, 'Idempotency-Key belongs to another request');
    }
    this.#await(known, request.reader);
    const outcome = await known.outcome;
    this.#awaitNoMore(request.reader);
    if (outcome === null || 'verdict' in outcome) return outcome;
    return this.#read(known, outcome, { afterSeq: 0, request });
  }

  /** @returns null: there are as many as may be, and none that could go. */
  add(call: StatelessCall, request: ClientRequest, body: Uint8Array): DurableCall | null {
    if (!this.#hasRoom()) return null;
    const key = request.forwarded['idempotency-key'];
    const repeatable = key === undefined ? null : { name: nameOf(request, key), digest: digestOf(body) };
    const added: DurableCall = {
      call,
      scope: scopeOf(request),
      repeatable,
      awaiting: 0,
      outcome: null,
      hasBegun: false,
      stream: null,
      usedAtMs: this.#options.now(),
    };
    this.#calls.add(added);
    this.#await(added, request.reader);
    if (repeatable !== null) this.#byName.set(repeatable.name, added);
    return added;
  }

  /** Key of the stream that it is answered with, and what the ids of that begin with. */
  identify(
    durable: DurableCall,
    { name: key, epoch }: StreamRef,
    calls: readonly string[],
  ): { key: string; prefix: string } {
    this.#byKey.set(key, durable);
    return { key, prefix: this.#options.ids.prefix({ ...durable.scope, key, epoch, calls }) };
  }

  /** Its answer has begun, or is whole. */
  begun(durable: DurableCall, reader: number, outcome: MessageStream | WholeAnswer): void {
    this.#awaitNoMore(reader);
    durable.hasBegun = true;
    if (!('verdict' in outcome)) durable.stream = outcome;
    const isOver = 'verdict' in outcome && durable.repeatable === null;
    // It may have been forgotten while its stream was made.
    if (isOver || !this.#calls.has(durable)) this.forget(durable);
  }

  /** The client has hung up before the answer began. Without a key it has nothing to come back with. */
  left(reader: number): void {
    const durable = this.#awaitNoMore(reader);
    if (durable !== null && durable.repeatable === null) this.forget(durable);
  }

  /** GET with `Last-Event-ID`. */
  async resume(request: ClientRequest): Promise<Verdict> {
    const { ids } = this.#options;
    const scope = scopeOf(request);
    const position = ids.read(request.lastEventId, scope);
    if (position === null) return settleClaimed(request.lastEventId);
    const { seq, key, epoch } = position;
    if (seq === null) return NOTHING_MORE;
    const lost = lostStream(ids, { ...position, ...scope, seq }, DURABLE_READER);
    const known = this.#byKey.get(key);
    if (known === undefined) return this.#resumeAnswered(position, lost, { afterSeq: seq, request });
    const { stream } = known;
    return stream?.stream.epoch === epoch ? this.#read(known, stream, { afterSeq: seq, request }) : lost;
  }

  /** Lets go of what nobody has come back to, and keeps the rest. Call it every few hundred milliseconds. */
  sweep(): void {
    const { streams, responseGraceMs } = this.#options;
    const nowMs = this.#options.now();
    for (const durable of this.#calls) {
      const { stream, awaiting } = durable;
      if (awaiting > 0 || (stream !== null && stream.reader !== null)) durable.usedAtMs = nowMs;
      if (nowMs - durable.usedAtMs >= responseGraceMs) this.forget(durable);
      else if (stream !== null) streams.touch(stream.stream);
    }
  }

  /** Cancels it, if it is not answered yet. */
  forget(durable: DurableCall): void {
    const { call, repeatable, stream } = durable;
    this.#calls.delete(durable);
    if (repeatable !== null && this.#byName.get(repeatable.name) === durable) {
      this.#byName.delete(repeatable.name);
    }
    call?.abort();
    if (stream === null) return;
    this.#byKey.delete(stream.key);
    this.#options.streams.remove(stream.stream);
  }

  /** The process goes down: what is answered is for the next one, where there is a log. */
  close(): void {
    for (const { call } of this.#calls) call?.abort();
  }

  /** What another process was answered may be in the log. */
  async #resumeAnswered(position: EventPosition, lost: Verdict, reading: Reading): Promise<Verdict> {
    const { streams, ids, now } = this.#options;
    const found = await findAnswered(streams, position);
    const known = this.#byKey.get(position.key);
    if (known?.stream != null) return this.#read(known, known.stream, reading);
    if (found === null) return lost;
    if (!this.#hasRoom()) return refusal(503, LIMIT_REACHED, 'too many calls');
    const scope = scopeOf(reading.request);
    const stream = new MessageStream({
      ...this.#options,
      stream: found.ref,
      key: position.key,
      prefix: ids.prefix({ ...scope, ...position }),
      calls: position.calls,
      answered: () => undefined,
      failed: () => undefined,
      lost: () => undefined,
    });
    stream.suspend();
    const made = { call: null, scope, repeatable: null, awaiting: 0, outcome: null, hasBegun: true };
    const durable: DurableCall = { ...made, stream, usedAtMs: now() };
    this.#calls.add(durable);
    this.#byKey.set(position.key, durable);
    return this.#read(durable, stream, reading);
  }

  #await(durable: DurableCall, reader: number): void {
    durable.awaiting++;
    this.#awaited.set(reader, durable);
  }

  /** @returns what the connection waited for; null: nothing. */
  #awaitNoMore(reader: number): DurableCall | null {
    const durable = this.#awaited.get(reader);
    if (durable === undefined) return null;
    this.#awaited.delete(reader);
    durable.awaiting--;
    durable.usedAtMs = this.#options.now();
    return durable;
  }

  async #read(durable: DurableCall, stream: MessageStream, { afterSeq, request }: Reading): Promise<Verdict> {
    durable.usedAtMs = this.#options.now();
    const isNewest = await this.#options.readers.takeOver(stream, request);
    return isNewest ? follow(DURABLE_READER, stream, afterSeq) : TAKEN_OVER;
  }

  #hasRoom(): boolean {
    const { durableCallsMax, counts } = this.#options;
    if (this.#calls.size < durableCallsMax || this.#forgetOldest()) return true;
    counts.add(FrontCount.refusedCalls, 1);
    return false;
  }

  /** The oldest that is answered and has no reader. @returns whether there was one. */
  #forgetOldest(): boolean {
    for (const durable of this.#calls) {
      const { hasBegun, awaiting, stream } = durable;
      const isRead = stream !== null && (!stream.isClosed || stream.reader !== null);
      if (!hasBegun || awaiting > 0 || isRead) continue;
      this.forget(durable);
      return true;
    }
    return false;
  }
}

/**
 * The id may be of an earlier process, whose secret is gone with it. A refusal does not end a call for its client, so its
 * calls are answered as lost. It is told nothing but what it says itself, under the id that it has brought.
 */
function settleClaimed(lastEventId: string): Verdict {
  const claimed = EventIds.claimed(lastEventId);
  if (claimed === null) return refusal(400, BAD_REQUEST, 'Last-Event-ID was not given for this server');
  const { calls, epoch, seq } = claimed;
  if (seq === null) return NOTHING_MORE;
  const prefix = lastEventId.split('.', 2).join('.');
  return { verdict: 'lost', session: '', prefix, calls, primes: true, cursor: formatCursor(epoch, seq) };
}

function scopeOf({ mount, principal }: ClientRequest): DurableCall['scope'] {
  return { session: `mount:${mount}`, principal };
}

function nameOf({ mount, principal }: ClientRequest, key: string): string {
  return JSON.stringify([mount, principal, key]);
}

function digestOf(body: Uint8Array): string {
  return createHash('sha256').update(body).digest('base64');
}
