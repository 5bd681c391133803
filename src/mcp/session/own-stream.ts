/**
 * A session's own stream, for what belongs to no call. It is made when it is first asked for. Another session may take it
 * over, with whoever reads it, and another broker, where several share a log.
 */

import { RequestError } from '../../errors.js';
import type { RpcMessage } from '../json-rpc.js';
import type { LeftStream, McpStreams } from '../stream/mcp-streams.js';
import type { MessageStream } from '../stream/message-stream.js';
import { messageType, NOTE_TYPES } from '../stream/stream-notes.js';
import type { ForwardedHeaders, MessageSink, Upstream } from '../upstream/upstream.js';
import type { OwnRecord } from './session-record.js';
import type { SessionStreams } from './session-streams.js';
import type { SharedSession } from './shared-session.js';

export interface OwnStreamOptions {
  /** See stream-keys.ts. */
  readonly key: string;
  readonly upstream: Upstream;
  readonly streams: McpStreams;
  readonly byKey: SessionStreams;
  /** Null: no other broker has a part in the session. */
  readonly shared: SharedSession | null;
  /** Whether another process may go on with it. */
  readonly isKept: boolean;
  readonly isEnded: () => boolean;
  /** Makes the stream. @throws {RequestError} no room for it */
  readonly make: () => Promise<MessageStream>;
  /** Something has changed that is to be kept. */
  readonly changed: () => void;
}

export class OwnStream implements MessageSink {
  readonly #options: OwnStreamOptions;
  #opening: Promise<MessageStream> | null = null;
  /** Whether messages were lost for want of room, and nobody was told yet. */
  #hasHole = false;
  #listening: ForwardedHeaders | null = null;

  constructor(options: OwnStreamOptions) {
    this.#options = options;
  }

  /** Whether what belongs to no call has nowhere to go from here. */
  get isClosed(): boolean {
    const { isEnded, shared } = this.#options;
    return isEnded() || shared?.isOwnHere === false;
  }

  /** Headers with which the server is listened to, to be kept; null: it is not, or it is by who reads. */
  get listening(): ForwardedHeaders | null {
    return this.#options.shared === null ? this.#listening : null;
  }

  /** What is to be kept of it; null: there is none, or the stream itself says it. */
  get record(): Omit<OwnRecord, 'isRead'> | null {
    const { shared, byKey, key } = this.#options;
    const own = shared === null ? byKey.get(key) : undefined;
    if (own === undefined) return null;
    return { name: own.stream.name, deliveredSeq: own.deliveredSeq, hasHole: this.#hasHole };
  }

  /** @throws {RequestError} no room for it */
  open(): Promise<MessageStream> {
    this.#opening ??= this.#open().catch((error: unknown) => {
      this.#opening = null;
      throw error;
    });
    return this.#opening;
  }

  /** As `open`; null: there is no room for it. */
  openOrNull(): Promise<MessageStream | null> {
    return this.open().catch((error: unknown) => {
      if (!(error instanceof RequestError)) throw error;
      return null;
    });
  }

  /** Whether messages were lost that no client was told of. True once: the caller tells the client. */
  takeHole(): boolean {
    const hadHole = this.#hasHole;
    this.#hasHole = false;
    return hadHole;
  }

  /** From now on what belongs to no call comes here. @param reached where the server's stream can be taken up */
  listen(headers: ForwardedHeaders, reached: string | null = null): void {
    const { upstream, isEnded, changed } = this.#options;
    if (this.#listening !== null || isEnded()) return;
    this.#listening = headers;
    changed();
    if (!this.isClosed) upstream.listen(headers, this, reached);
  }

  push(message: RpcMessage, reached: string | null = null): Promise<void> | void {
    // An answer to nothing that was asked.
    if (message.kind === 'response') return;
    return this.tell(message.text, null, this.#options.isKept ? messageType(reached) : null);
  }

  reached(id: string): void {
    if (this.#options.isKept) void this.tell(id, null, NOTE_TYPES.reached);
  }

  fail(): void {}

  /**
   * Takes a message as it is.
   * @param call that it answers, as JSON; null: none.
   * @param type see stream-notes.ts
   * @returns a promise that resolves when the next may come.
   */
  async tell(text: string, call: string | null = null, type: string | null = null): Promise<void> {
    const own = await this.openOrNull();
    if (own === null) this.#hasHole = true;
    else await own.tell(text, call, type);
  }

  /** The stream, and who reads it, go to another session, or stay with another broker. */
  give(own: MessageStream): void {
    this.#opening = null;
    this.#options.byKey.delete(own.key);
  }

  /** Takes that of another session in the place of this one: whoever reads the old one is sent away. */
  take(own: MessageStream): void {
    const { byKey, key, streams } = this.#options;
    const before = byKey.get(key);
    if (before !== undefined) streams.remove(before.stream);
    byKey.set(key, own);
    this.#opening = Promise.resolve(own);
    own.lost = () => this.lost(own);
  }

  /** The stream is gone, and with it what nobody was given. */
  lost(own: MessageStream): void {
    const { byKey, key, changed } = this.#options;
    if (byKey.get(key) === own) byKey.delete(key);
    this.#opening = null;
    this.#hasHole = true;
    changed();
  }

  /** This broker goes on with what another one has left. @param reached as in `listen` */
  goOn(own: MessageStream, reached: string | null): void {
    this.#opening = Promise.resolve(own);
    if (this.#listening !== null) this.#options.upstream.listen(this.#listening, this, reached);
  }

  /** Goes on with what another process has left. @param left null: it is gone. */
  restore(left: LeftStream | null, { deliveredSeq, isRead, hasHole }: OwnRecord): void {
    const { byKey, key } = this.#options;
    // Who read on when the process ended may have been given more than is written down.
    this.#hasHole = hasHole || left === null || (isRead && deliveredSeq < left.head);
    if (left === null) return;
    const own = byKey.adopt(left.ref, key, []);
    own.deliveredSeq = deliveredSeq;
    this.#opening = Promise.resolve(own);
  }

  async #open(): Promise<MessageStream> {
    const { shared, make, changed } = this.#options;
    if (shared !== null) return shared.openOwn();
    const own = await make();
    changed();
    return own;
  }
}
