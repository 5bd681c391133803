/**
 * A session in which other brokers have a part that share the log. Each of its streams has one broker that appends to it.
 * While that one is there, the stream is only read here; one that somebody reads when it is gone is taken over, and goes
 * on from here.
 */

import type { StreamRef } from '../../broker/edge-stream.js';
import { RequestError } from '../../errors.js';
import type { EventPosition } from '../event-id.js';
import type { McpStreams, SharedStreams } from '../stream/mcp-streams.js';
import type { MessageStream } from '../stream/message-stream.js';
import { OWN_STREAM } from '../stream/stream-keys.js';
import { readHistory, type StreamHistory } from './call-history.js';
import type { Session } from './session.js';
import type { SessionRecord } from './session-record.js';
import type { SessionStreams } from './session-streams.js';

export interface SharedSessionOptions {
  readonly label: string;
  readonly streams: McpStreams;
  readonly shared: SharedStreams;
  readonly byKey: SessionStreams;
  readonly isEnded: () => boolean;
  /** This broker appends to the stream from now on. */
  readonly taken: (stream: MessageStream, history: StreamHistory) => void;
  /** Another broker appends to the stream of a call that was under way here. */
  readonly takenAway: () => void;
  /** The session's own stream is not here any more. */
  readonly ownForgotten: (own: MessageStream) => void;
}

export class SharedSession {
  readonly #options: SharedSessionOptions;
  /** Streams that another broker appends to, and which; null: not known yet. Bounded by their readers. */
  readonly #followed = new Map<MessageStream, string | null>();
  readonly #busy = new Set<MessageStream>();
  /** Whether this broker appends to the session's own stream. */
  #isOwnHere = false;
  #record: SessionRecord | null = null;

  constructor(options: SharedSessionOptions) {
    this.#options = options;
  }

  get isOwnHere(): boolean {
    return this.#isOwnHere;
  }

  /** Takes up what was written of the session, here or by another broker. */
  refresh(session: Session, record: SessionRecord): void {
    if (record === this.#record) return;
    this.#record = record;
    const { upstream, serverRequests, cancelled } = session;
    for (const call of record.cancelled ?? []) {
      // An id that was cancelled before may have been given to another call since.
      if (cancelled?.includes(call) !== true) session.noteCancelled(call);
    }
    const isSame = upstream.session?.id === record.upstream.id;
    serverRequests.restore(isSame ? [...serverRequests.answered, ...record.answered] : record.answered);
    upstream.adopt(record.upstream);
  }

  /** Whether another broker than this may have given its client what is in the session's own stream. */
  isReadElsewhere({ stream }: MessageStream): boolean {
    return (this.#options.streams.positions(stream)?.head ?? 0) > 1;
  }

  /** The stream of a call; null: it is no more. @throws {RequestError} nobody can say now */
  async find(position: EventPosition): Promise<MessageStream | null> {
    const { streams, shared, byKey } = this.#options;
    const { key, epoch, calls } = position;
    const known = byKey.get(key);
    // An id that another broker gave names an event of which this one may not have heard.
    if (known !== undefined) await streams.find(known.stream.name);
    const isSettled = known !== undefined && streams.positions(known.stream)?.closed === true;
    if (known !== undefined && (isSettled || shared.isHere(known.stream))) {
      return known.stream.epoch === epoch ? known : null;
    }
    const ref = await this.#findCall(position);
    if (ref === null || this.#options.isEnded()) return null;
    if (streams.positions(ref)?.closed === true) return byKey.findAnswered(position);
    const other = byKey.get(key);
    if (other !== undefined && other !== known) return other;
    // What still comes of it here goes nowhere.
    if (known?.isClosed === false) this.#options.takenAway();
    return this.#follow(known ?? byKey.adopt(ref, key, calls));
  }

  /** The session's own stream. @throws {RequestError} */
  async openOwn(): Promise<MessageStream> {
    const { streams, shared, label, byKey, isEnded } = this.#options;
    const ref = await shared.open(label);
    await streams.find(ref.name);
    this.#isOwnHere = streams.positions(ref)?.head === 0 && (await shared.takeOver(ref, 0));
    if (isEnded()) throw new RequestError('stream_not_found');
    const own = byKey.adopt(ref, OWN_STREAM, []);
    return this.#isOwnHere ? own : this.#follow(own);
  }

  /** Nobody reads the stream here any more: if another broker appends to it, it is forgotten here. */
  left(stream: MessageStream): void {
    const { shared, byKey, ownForgotten } = this.#options;
    if (shared.isHere(stream.stream)) return;
    this.#followed.delete(stream);
    if (byKey.get(stream.key) !== stream || byKey.isAnswered(stream)) return;
    byKey.delete(stream.key);
    if (stream.isOwn) ownForgotten(stream);
  }

  /** Takes over what is read here of brokers that are gone. Call it every few hundred milliseconds. */
  sweep(): void {
    this.#sweepOwn();
    for (const stream of this.#followed.keys()) {
      if (this.#busy.has(stream)) continue;
      this.#busy.add(stream);
      void this.#look(stream)
        .catch((error: unknown) => {
          // The next sweep may find the log better.
          if (!(error instanceof RequestError)) throw error;
        })
        .finally(() => this.#busy.delete(stream));
    }
  }

  /** If this broker was slow, another one may have taken the session's own stream over: it goes on there. */
  #sweepOwn(): void {
    const own = this.#options.byKey.get(OWN_STREAM);
    if (own === undefined || !this.#isOwnHere || this.#options.shared.isHere(own.stream)) return;
    this.#isOwnHere = false;
    this.#follow(own);
    if (own.reader === null) this.left(own);
  }

  #follow(stream: MessageStream): MessageStream {
    const { shared } = this.#options;
    stream.suspend();
    shared.letGo(stream.stream);
    this.#followed.set(stream, shared.makerOf(stream.stream.name));
    return stream;
  }

  async #look(stream: MessageStream): Promise<void> {
    const { streams, shared, byKey, taken, isEnded } = this.#options;
    const { stream: ref } = stream;
    const maker = this.#followed.get(stream) ?? null;
    if (streams.positions(ref)?.closed !== true && maker !== null && (await this.#isElsewhere(maker))) return;
    await streams.find(ref.name);
    const at = streams.positions(ref);
    const history = at === null || at.closed ? null : await this.#historyOf(ref, at.head);
    // It has ended, or its beginning went with time: who reads it is told.
    if (at === null || history === null) return void this.#followed.delete(stream);
    const broker = history.taken ?? shared.makerOf(ref.name);
    if (this.#followed.has(stream)) this.#followed.set(stream, broker);
    if (broker !== null && (await this.#isElsewhere(broker))) return;
    if (broker === shared.broker) {
      // What it has yet to append, and to end, is on its way.
      if (shared.isHere(ref)) return;
      shared.goOn(ref, at.head);
    } else if (!(await shared.takeOver(ref, at.head))) return;
    this.#followed.delete(stream);
    if (isEnded()) return;
    byKey.set(stream.key, stream);
    stream.resume(history);
    if (stream.isOwn) this.#isOwnHere = true;
    taken(stream, history);
  }

  async #isElsewhere(broker: string): Promise<boolean> {
    const { shared } = this.#options;
    return broker !== shared.broker && !(await shared.isGone(broker));
  }

  async #findCall({ key: name, epoch }: EventPosition): Promise<StreamRef | null> {
    const { streams, label } = this.#options;
    const ref = await streams.find(name);
    if (ref === null || ref.epoch !== epoch) return null;
    const history = await this.#historyOf(ref);
    // Its client may have been quicker than the first commit, or the broker was killed before that.
    const hasJustBegun = streams.positions(ref)?.head === 0;
    return hasJustBegun || history?.note?.session === label ? ref : null;
  }

  #historyOf(ref: StreamRef, head?: number): Promise<StreamHistory | null> {
    const { streams } = this.#options;
    const at = streams.positions(ref);
    return readHistory(streams, { ref, head: head ?? at?.head ?? 0 }, (at?.logFloor ?? 1) - 1);
  }
}
