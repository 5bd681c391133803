/** The streams of a session by their keys (stream-keys.ts): those under way, and the newest of those that are answered. */

import type { StreamRef } from '../../broker/edge-stream.js';
import type { EventPosition, StreamIdentity } from '../event-id.js';
import { farewell } from '../farewell.js';
import type { RpcError } from '../json-rpc.js';
import { findAnswered } from '../stream/answered-streams.js';
import { type CallsBefore, MessageStream } from '../stream/message-stream.js';
import type { SessionOptions } from './session-options.js';

export interface SessionStreamsOptions
  extends Pick<SessionOptions, 'streams' | 'backlog' | 'ids' | 'callsMax'> {
  /** What ids are bound to. */
  readonly identity: Pick<StreamIdentity, 'session' | 'principal'>;
  /** Whether another process may go on with them. */
  readonly isKept: boolean;
  readonly isEnded: () => boolean;
  readonly answered: (stream: MessageStream) => void;
  readonly failed: (error: RpcError) => void;
  readonly lost: (stream: MessageStream) => void;
  readonly left: (stream: MessageStream) => void;
}

export class SessionStreams {
  readonly #options: SessionStreamsOptions;
  readonly #byKey = new Map<string, MessageStream>();
  /** Those that are answered, oldest first. */
  readonly #answered: MessageStream[] = [];

  constructor(options: SessionStreamsOptions) {
    this.#options = options;
  }

  get hasReader(): boolean {
    for (const stream of this.#byKey.values()) if (stream.reader !== null) return true;
    return false;
  }

  get(key: string): MessageStream | undefined {
    return this.#byKey.get(key);
  }

  set(key: string, stream: MessageStream): void {
    this.#byKey.set(key, stream);
  }

  delete(key: string): void {
    this.#byKey.delete(key);
  }

  [Symbol.iterator](): Iterator<MessageStream> {
    return this.#byKey.values();
  }

  adopt(ref: StreamRef, key: string, calls: readonly string[], before?: CallsBefore): MessageStream {
    const { streams, backlog, ids, identity, isKept, failed, answered, lost, left } = this.#options;
    const stream: MessageStream = new MessageStream({
      ...{ streams, stream: ref, backlog, key, calls, isKept, failed },
      prefix: ids.prefix({ ...identity, key, epoch: ref.epoch, calls }),
      farewells: isKept ? [] : calls.map(farewell),
      answered: () => answered(stream),
      lost: () => lost(stream),
      left: () => left(stream),
      ...(before === undefined ? {} : { before }),
    });
    this.#byKey.set(key, stream);
    return stream;
  }

  /** One that was answered elsewhere, or before this process began; null: there is none. @throws {RequestError} not now */
  async findAnswered(position: EventPosition): Promise<MessageStream | null> {
    const { key, calls } = position;
    const found = await findAnswered(this.#options.streams, position);
    if (found === null || this.#options.isEnded()) return null;
    const other = this.#byKey.get(key);
    if (other !== undefined) return other;
    const stream = this.adopt(found.ref, key, calls);
    stream.suspend();
    stream.endsWithNote = found.endsWithNote;
    this.keepAnswered(stream);
    return stream;
  }

  isAnswered(stream: MessageStream): boolean {
    return this.#answered.includes(stream);
  }

  keepAnswered(stream: MessageStream): void {
    this.#answered.push(stream);
    while (this.#answered.length > this.#options.callsMax) {
      const oldest = this.#answered.shift() as MessageStream;
      this.#byKey.delete(oldest.key);
      this.#options.streams.remove(oldest.stream);
    }
  }

  /** Keeps what is in use from its time to live, and forgets what that has taken. */
  keep(): void {
    // Of the oldest first, and seldom of another: each may be much of what there is of a session.
    for (let oldest = this.#answered[0]; oldest !== undefined; oldest = this.#answered[0]) {
      if (oldest.reader !== null || this.#options.streams.positions(oldest.stream) !== null) break;
      this.#byKey.delete(oldest.key);
      this.#answered.shift();
    }
    for (const stream of this.#byKey.values()) {
      const isInUse = !stream.isClosed || stream.reader !== null;
      if (isInUse) this.#options.streams.touch(stream.stream);
    }
  }

  /** Readers get the rest of theirs; the time to live takes the streams. */
  end(): void {
    for (const stream of this.#byKey.values()) {
      if (stream.reader === null) this.#options.streams.remove(stream.stream);
    }
    this.#byKey.clear();
  }
}
