/**
 * Calls of 2026-07-28 that outlive the connection that asked for them, where the setting says so (contract 12.12): the
 * answer goes on into its stream, and is read again after an id of it, or by the same request with the same
 * `Idempotency-Key`. What nobody has come back to for long enough is cancelled, or forgotten.
 */

import { createHash } from 'node:crypto';
import { NOTHING_MORE, refusal, TAKEN_OVER } from '../answers.js';
import type { EventIds } from '../event-id.js';
import { FrontCount, type FrontCounts } from '../front-counts.js';
import { BAD_REQUEST } from '../json-rpc.js';
import type { ClientRequest, Verdict, WholeAnswer } from '../messages.js';
import type { Readers } from '../readers.js';
import type { McpStreams } from '../stream/mcp-streams.js';
import type { MessageStream } from '../stream/message-stream.js';
import { follow, lostStream } from '../stream/stream-verdicts.js';
import type { StatelessCall } from './stateless-call.js';

const KEY_LENGTH_MAX = 255;
/** There are no sessions, and clients know ids without a message. */
export const DURABLE_READER = { id: '', primes: true, capabilities: [] };

export interface DurableCallsOptions {
  readonly streams: McpStreams;
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
  readonly call: StatelessCall;
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

export class DurableCalls {
  readonly #options: DurableCallsOptions;
  /** Oldest first. */
  readonly #calls = new Set<DurableCall>();
  readonly #byKey = new Map<string, DurableCall>();
  readonly #byName = new Map<string, DurableCall>();
  /** By the connections that wait for an answer to begin; bounded by the edges'. */
  readonly #awaited = new Map<number, DurableCall>();
  #lastKey = 0;

  constructor(options: DurableCallsOptions) {
    this.#options = options;
  }

  /** @returns what a request is answered that was made before; null: it was not. */
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
    const { durableCallsMax, counts, now } = this.#options;
    if (this.#calls.size >= durableCallsMax && !this.#forgetOldest()) {
      counts.add(FrontCount.refusedCalls, 1);
      return null;
    }
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
      usedAtMs: now(),
    };
    this.#calls.add(added);
    this.#await(added, request.reader);
    if (repeatable !== null) this.#byName.set(repeatable.name, added);
    return added;
  }

  /** Name of the stream that it is answered with, and what the ids of that begin with. */
  identify(durable: DurableCall, epoch: string, calls: readonly string[]): { key: string; prefix: string } {
    const key = `d${++this.#lastKey}`;
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
    if (position === null) return refusal(400, BAD_REQUEST, 'Last-Event-ID was not given for this server');
    const { seq, key, epoch } = position;
    if (seq === null) return NOTHING_MORE;
    const durable = this.#byKey.get(key);
    const stream = durable?.stream ?? null;
    if (durable === undefined || stream === null || stream.stream.epoch !== epoch) {
      return lostStream(ids, { ...position, ...scope, seq }, DURABLE_READER);
    }
    return this.#read(durable, stream, { afterSeq: seq, request });
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
    call.abort();
    if (stream === null) return;
    this.#byKey.delete(stream.key);
    this.#options.streams.remove(stream.stream);
  }

  close(): void {
    for (const durable of this.#calls) this.forget(durable);
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

  async #read(
    durable: DurableCall,
    stream: MessageStream,
    { afterSeq, request }: { afterSeq: number; request: ClientRequest },
  ): Promise<Verdict> {
    durable.usedAtMs = this.#options.now();
    const isNewest = await this.#options.readers.takeOver(stream, request);
    return isNewest ? follow(DURABLE_READER, stream, afterSeq) : TAKEN_OVER;
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

function scopeOf({ mount, principal }: ClientRequest): DurableCall['scope'] {
  return { session: `mount:${mount}`, principal };
}

function nameOf({ mount, principal }: ClientRequest, key: string): string {
  return JSON.stringify([mount, principal, key]);
}

function digestOf(body: Uint8Array): string {
  return createHash('sha256').update(body).digest('base64');
}
