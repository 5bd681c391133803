/**
 * One client's session with one server: its streams, the calls under way, and the server's own session behind it.
 */

import { createHash } from 'node:crypto';
import { RequestError } from '../errors.js';
import type { Backlog } from './backlog.js';
import type { EventIds, EventPosition, StreamIdentity } from './event-id.js';
import { FrontCount, type FrontCounts } from './front-counts.js';
import { type RpcError, SESSION_ENDED } from './json-rpc.js';
import type { McpStreams } from './mcp-streams.js';
import { MessageStream } from './message-stream.js';
import { takesPriming } from './revision.js';
import { ServerRequests } from './server-requests.js';
import { OWN_STREAM, sseKey } from './stream-keys.js';
import type { ForwardedHeaders, MessageSink, Upstream } from './upstream.js';

/** `sse` is the one of 2024-11-05, where all that a session says comes on its own stream. */
export type Transport = 'streamable' | 'sse';

/** Enough that no two are the same. */
const LABEL_LENGTH = 16;

export const ENDED: RpcError = {
  code: SESSION_ENDED,
  message: 'The session ended before the call was answered',
  data: { reason: 'session_ended' },
};

export interface SessionOptions {
  readonly id: string;
  readonly mount: number;
  readonly principal: string;
  readonly transport: Transport;
  readonly upstream: Upstream;
  readonly streams: McpStreams;
  readonly backlog: Backlog;
  readonly ids: EventIds;
  /** Calls under way at a time, and streams of answered ones that are kept. */
  readonly callsMax: number;
  readonly counts: FrontCounts;
  /** Told of calls that the front has to answer itself. */
  readonly failed: (session: Session, error: RpcError) => void;
}

export class Session {
  readonly id: string;
  /** What log lines call it: whoever knows the id can use it. */
  readonly label: string;
  readonly mount: number;
  readonly principal: string;
  readonly transport: Transport;
  readonly upstream: Upstream;
  /** What belongs to no call, on its way to the session's own stream. */
  readonly own: MessageSink;
  readonly serverRequests = new ServerRequests();
  /** Negotiated; that of the client's request until then. */
  revision = '';
  /** What the server can do, by the names of its capabilities. */
  capabilities: readonly string[] = [];
  usedAtMs = 0;
  /** Called when it ends, for the last that is said on its own stream. */
  ending: ((own: MessageStream) => void) | null = null;

  readonly #options: SessionOptions;
  readonly #byKey = new Map<string, MessageStream>();
  /** Those that are answered, oldest first. */
  readonly #answered: MessageStream[] = [];
  #own: Promise<MessageStream> | null = null;
  #underWay = 0;
  #lastKey = 0;
  /** Whether messages that belong to no call were lost for want of room, and nobody was told yet. */
  #hasHole = false;
  #listening = false;
  #ended = false;

  constructor(options: SessionOptions) {
    this.id = options.id;
    this.label = createHash('sha256').update(options.id).digest('base64url').slice(0, LABEL_LENGTH);
    this.mount = options.mount;
    this.principal = options.principal;
    this.transport = options.transport;
    this.upstream = options.upstream;
    this.#options = options;
    this.own = ownSink(this);
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
    return this.#underWay > 0 || (this.revision !== '' && this.#hasReader);
  }

  get isEnded(): boolean {
    return this.#ended;
  }

  get #hasReader(): boolean {
    for (const stream of this.#byKey.values()) if (stream.reader !== null) return true;
    return false;
  }

  /** @returns null when as many calls are under way as there may be. @throws {RequestError} no room for a stream */
  async openCall(calls: readonly string[]): Promise<MessageStream | null> {
    if (this.#underWay >= this.#options.callsMax) return null;
    this.#countUnderWay(1);
    try {
      return await this.#open(`c${++this.#lastKey}`, calls);
    } catch (error) {
      this.#countUnderWay(-1);
      throw error;
    }
  }

  /** The session's own stream, made when it is first asked for. */
  ownStream(): Promise<MessageStream> {
    this.#own ??= this.#open(this.#ownKey, []).catch((error: unknown) => {
      this.#own = null;
      throw error;
    });
    return this.#own;
  }

  /** The same; null: there is no room for it. */
  ownOrNull(): Promise<MessageStream | null> {
    return this.ownStream().catch((error: unknown) => {
      if (!(error instanceof RequestError)) throw error;
      return null;
    });
  }

  /** Whether there is a hole in what it said that nobody was told of; from now on somebody is. */
  takeHole(): boolean {
    const hadHole = this.#hasHole;
    this.#hasHole = false;
    return hadHole;
  }

  /** Has the server's messages that belong to no call go to the session's own stream from now on. */
  listen(headers: ForwardedHeaders): void {
    if (this.#listening || this.#ended) return;
    this.#listening = true;
    this.upstream.listen(headers, this.own);
  }

  /**
   * Puts a message into the session's own stream.
   * @param call that it answers, as JSON; null: none.
   * @returns a promise that resolves when the next may come.
   */
  async tell(text: string, call: string | null = null): Promise<void> {
    const own = await this.ownOrNull();
    if (own === null) this.#hasHole = true;
    else await own.tell(text, call);
  }

  /** Its own stream, and who reads it, go to another session. */
  giveOwn(own: MessageStream): void {
    this.#own = null;
    this.#byKey.delete(own.key);
  }

  /** Takes that of another session in the place of its own: whoever reads the old one is sent away. */
  takeOwn(own: MessageStream): void {
    const before = this.#byKey.get(this.#ownKey);
    if (before !== undefined) this.#options.streams.remove(before.stream);
    this.#byKey.set(this.#ownKey, own);
    this.#own = Promise.resolve(own);
    own.lost = () => this.#forget(own);
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
  find({ key, epoch }: EventPosition): MessageStream | null {
    const stream = this.#byKey.get(key);
    return stream !== undefined && stream.stream.epoch === epoch ? stream : null;
  }

  /** The client waits for these no longer. */
  noteCancelled(call: string): void {
    for (const stream of this.#byKey.values()) if (stream.awaits(call)) stream.cancelled.add(call);
  }

  /** Keeps what is in use from its time to live, and forgets streams that are no more. */
  keep(): void {
    for (const stream of this.#byKey.values()) {
      const isInUse = !stream.isClosed || stream.reader !== null;
      if (isInUse) this.#options.streams.touch(stream.stream);
    }
  }

  /** Resolves when the server knows. */
  end(): Promise<void> {
    if (this.#ended) return Promise.resolve();
    this.#ended = true;
    for (const stream of [...this.#byKey.values()]) {
      if (stream.isOwn) {
        this.ending?.(stream);
        stream.close();
      } else stream.fail(ENDED);
    }
    const told = this.upstream.end();
    // Readers get the rest of theirs; the time to live takes the streams.
    for (const stream of this.#byKey.values()) {
      if (stream.reader === null) this.#options.streams.remove(stream.stream);
    }
    this.#byKey.clear();
    return told;
  }

  #countUnderWay(change: 1 | -1): void {
    this.#underWay += change;
    this.#options.counts.add(FrontCount.callsUnderWay, change);
  }

  /** On `sse` an id alone says which session it is of. */
  get #ownKey(): string {
    return this.transport === 'sse' ? sseKey(this.id) : OWN_STREAM;
  }

  async #open(key: string, calls: readonly string[]): Promise<MessageStream> {
    if (this.#ended) throw new RequestError('stream_not_found');
    const { streams, backlog, ids } = this.#options;
    const ref = await streams.create();
    const stream: MessageStream = new MessageStream({
      streams,
      stream: ref,
      backlog,
      key,
      prefix: ids.prefix({ ...this.identity, key, epoch: ref.epoch, calls }),
      calls,
      answered: () => this.#noteAnswered(stream),
      failed: (error) => this.#options.failed(this, error),
      lost: () => this.#forget(stream),
    });
    this.#byKey.set(key, stream);
    if (this.#ended) stream.fail(ENDED);
    return stream;
  }

  #forget(stream: MessageStream): void {
    const key = stream.isOwn ? this.#ownKey : stream.key;
    if (this.#byKey.get(key) === stream) this.#byKey.delete(key);
    if (!stream.isOwn) return;
    this.#own = null;
    this.#hasHole = true;
  }

  #noteAnswered(stream: MessageStream): void {
    if (stream.isOwn) return;
    this.#countUnderWay(-1);
    this.#answered.push(stream);
    while (this.#answered.length > this.#options.callsMax) {
      const oldest = this.#answered.shift() as MessageStream;
      this.#byKey.delete(oldest.key);
      this.#options.streams.remove(oldest.stream);
    }
  }
}

function ownSink(session: Session): MessageSink {
  return {
    get isClosed() {
      return session.isEnded;
    },
    push(message) {
      // An answer to nothing that was asked.
      return message.kind === 'response' ? undefined : session.tell(message.text);
    },
    fail: () => undefined,
  };
}
