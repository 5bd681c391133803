/**
 * One client's session with one server: its streams, the calls under way, and the server's own session behind it.
 */

import type { StreamRef } from '../../broker/edge-stream.js';
import { RequestError } from '../../errors.js';
import type { EventPosition, StreamIdentity } from '../event-id.js';
import { FrontCount } from '../front-counts.js';
import type { RpcError } from '../json-rpc.js';
import { Newest } from '../newest.js';
import { takesPriming } from '../revision.js';
import type { CallsBefore, MessageStream } from '../stream/message-stream.js';
import { OWN_STREAM, sseKey } from '../stream/stream-keys.js';
import type { CallNote } from '../stream/stream-notes.js';
import { dismissLater } from '../upstream/dismissal.js';
import type { ForwardedHeaders, Upstream } from '../upstream/upstream.js';
import type { StreamHistory } from './call-history.js';
import { OwnStream } from './own-stream.js';
import { ServerRequests } from './server-requests.js';
import { SessionKeeper } from './session-keeper.js';
import { labelOf } from './session-label.js';
import { ENDED, type SessionOptions, type Transport } from './session-options.js';
import type { SessionRecord } from './session-record.js';
import { SessionStreams } from './session-streams.js';
import { SharedSession } from './shared-session.js';

/** Cancelled calls that are kept: other brokers have heard of the oldest long before so many follow. */
const CANCELLED_MAX = 100;

export class Session {
  readonly id: string;
  readonly label: string;
  readonly mount: number;
  readonly principal: string;
  readonly transport: Transport;
  readonly upstream: Upstream;
  readonly own: OwnStream;
  readonly serverRequests: ServerRequests;
  /** Null: it ends with the process. */
  readonly keeper: SessionKeeper | null;
  /** Null: no other broker has a part in it. */
  readonly shared: SharedSession | null;
  /** As it was negotiated with the server; empty until then. */
  revision = '';
  /** What the server can do, by the names of its capabilities. */
  capabilities: readonly string[] = [];
  usedAtMs = 0;
  /** Called when it ends, so that the last can be said on its own stream. */
  ending: ((own: MessageStream) => void) | null = null;

  readonly #options: SessionOptions;
  readonly #byKey: SessionStreams;
  /** By ids as JSON: calls that the client has cancelled, at whichever broker. */
  readonly #cancelled = new Newest<true>(CANCELLED_MAX);
  #underWay = 0;
  #ended = false;

  constructor(options: SessionOptions) {
    this.id = options.id;
    this.label = labelOf(options.id);
    this.mount = options.mount;
    this.principal = options.principal;
    this.transport = options.transport;
    this.upstream = options.upstream;
    this.#options = options;
    const { records, path } = options;
    this.keeper = records === null ? null : new SessionKeeper({ session: this, records, path });
    this.serverRequests = new ServerRequests(() => this.keeper?.keep());
    const isEnded = (): boolean => this.#ended;
    this.#byKey = new SessionStreams({
      ...options,
      identity: this.identity,
      isKept: this.keeper !== null,
      isEnded,
      answered: (stream) => this.#noteAnswered(stream),
      failed: (error) => this.noteFailed(error),
      lost: (stream) => this.#forget(stream),
      left: (stream) => {
        if (stream.isOwn) this.keeper?.ownIsLeft();
        this.shared?.left(stream);
      },
    });
    const { streams } = options;
    this.shared =
      streams.shared === null || this.keeper === null
        ? null
        : new SharedSession({
            ...{ label: this.label, streams, shared: streams.shared, byKey: this.#byKey, isEnded },
            taken: (stream, history) => this.#taken(stream, history),
            takenAway: () => this.#countUnderWay(-1),
            ownForgotten: (own) => this.own.give(own),
          });
    // On `sse` an id alone says which session it is of.
    const ownKey = this.transport === 'sse' ? sseKey(this.id) : OWN_STREAM;
    this.own = new OwnStream({
      ...{ key: ownKey, upstream: this.upstream, streams, byKey: this.#byKey, shared: this.shared, isEnded },
      isKept: this.keeper !== null,
      make: () => this.#open(ownKey, []),
      changed: () => this.keeper?.keep(),
    });
  }

  /** What its ids are bound to. */
  get identity(): Pick<StreamIdentity, 'session' | 'principal'> {
    return { session: this.id, principal: this.principal };
  }

  get primes(): boolean {
    return this.transport === 'streamable' && takesPriming(this.revision);
  }

  /** Whether somebody reads what it says, once the server has agreed to it, or waits for an answer. */
  get isInUse(): boolean {
    return this.#underWay > 0 || (this.revision !== '' && this.#byKey.hasReader);
  }

  get callsUnderWay(): number {
    return this.#underWay;
  }

  get isEnded(): boolean {
    return this.#ended;
  }

  /** @returns null when as many calls are under way as there may be. @throws {RequestError} no room for a stream */
  async openCall(calls: readonly string[], headers: ForwardedHeaders): Promise<MessageStream | null> {
    if (!this.beginCall()) return null;
    try {
      const stream = await this.#open(null, calls);
      stream.note('call', JSON.stringify({ session: this.label, calls, headers } satisfies CallNote));
      return stream;
    } catch (error) {
      this.#countUnderWay(-1);
      throw error;
    }
  }

  /** Calls that are answered on the session's own stream. @returns false when as many are under way as there may be. */
  beginCall(): boolean {
    if (this.#underWay >= this.#options.callsMax) return false;
    this.#countUnderWay(1);
    return true;
  }

  endCall(): void {
    this.#countUnderWay(-1);
  }

  noteFailed(error: RpcError): void {
    this.#options.failed(this, error);
  }

  /** The stream of a position; null: it is no more. */
  async find(position: EventPosition): Promise<MessageStream | null> {
    const { key, epoch, calls } = position;
    if (this.shared !== null) {
      if (calls.length > 0) return this.shared.find(position);
      // As in `SharedSession.find`.
      await this.#options.streams.find((await this.own.open()).stream.name);
    }
    const known = this.#byKey.get(key);
    if (known !== undefined || calls.length === 0) return known?.stream.epoch === epoch ? known : null;
    return this.#byKey.findAnswered(position);
  }

  /** What is to be kept of calls that were cancelled; undefined: no other broker has a part in the session. */
  get cancelled(): string[] | undefined {
    return this.shared === null ? undefined : Array.from(this.#cancelled, ([call]) => call);
  }

  /** The client waits for this call no longer. */
  noteCancelled(call: string): void {
    for (const stream of this.#byKey) if (stream.cancel(call)) dismissLater(this.upstream, stream);
    if (this.shared === null || this.#cancelled.has(call)) return;
    this.#cancelled.set(call, true);
    this.keeper?.keep();
  }

  /** Goes on with what another process has left; `own.restore` and `restoreCall` follow. */
  restore({ revision, capabilities, answered, cancelled = [] }: SessionRecord): void {
    for (const call of cancelled) this.#cancelled.set(call, true);
    this.revision = revision;
    this.capabilities = capabilities;
    this.serverRequests.restore(answered);
  }

  /** @param reached where the server's stream can be taken up; null: nobody knows. */
  restoreCall(ref: StreamRef, note: CallNote, before: CallsBefore, reached: string | null): void {
    const stream = this.#byKey.adopt(ref, ref.name, note.calls, before);
    this.#goOn(stream, note, { ...before, reached });
  }

  /** Keeps what is in use from its time to live, and forgets streams that are no more. */
  keep(): void {
    this.shared?.sweep();
    this.#byKey.keep();
  }

  /** Another process will go on with it. Resolves when the server is left alone. */
  suspend(): Promise<void> {
    this.#ended = true;
    for (const stream of this.#byKey) stream.suspend();
    return this.upstream.suspend();
  }

  /** Resolves when the server knows. */
  end(): Promise<void> {
    if (this.#ended) return Promise.resolve();
    this.#ended = true;
    for (const stream of [...this.#byKey]) {
      if (stream.isOwn) {
        this.ending?.(stream);
        stream.close();
      } else stream.fail(ENDED);
    }
    const told = this.upstream.end();
    this.#byKey.end();
    return told;
  }

  /** This broker goes on with what another one has left. */
  #taken(stream: MessageStream, history: StreamHistory): void {
    if (stream.isOwn) this.own.goOn(stream, history.reached);
    else this.#goOn(stream, history.note, history);
  }

  /** @param note null: nothing is known of it, but that it was begun. */
  #goOn(
    stream: MessageStream,
    note: CallNote | null,
    { answered, reached }: Pick<StreamHistory, 'answered' | 'reached'>,
  ): void {
    this.#countUnderWay(1);
    if (note?.calls.every((call) => answered.has(call)) === true) stream.close();
    else this.upstream.resume(reached, note?.headers ?? {}, stream);
  }

  #countUnderWay(change: 1 | -1): void {
    this.#underWay += change;
    this.#options.counts.add(FrontCount.callsUnderWay, change);
  }

  /** @param key null: the name of the stream. */
  async #open(key: string | null, calls: readonly string[]): Promise<MessageStream> {
    if (this.#ended) throw new RequestError('stream_not_found');
    const ref = await this.#options.streams.create();
    const stream = this.#byKey.adopt(ref, key ?? ref.name, calls);
    if (this.#ended) stream.fail(ENDED);
    return stream;
  }

  #forget(stream: MessageStream): void {
    if (stream.isOwn) this.own.lost(stream);
    else if (this.#byKey.get(stream.key) === stream) this.#byKey.delete(stream.key);
  }

  #noteAnswered(stream: MessageStream): void {
    if (stream.isOwn) return;
    this.#countUnderWay(-1);
    this.#byKey.keepAnswered(stream);
  }
}
