/**
 * One client's session with one server: its streams, the calls under way, and the server's own session behind it.
 */

import { createHash } from 'node:crypto';
import { RequestError } from '../errors.js';
import type { EventIds, EventPosition } from './event-id.js';
import { FrontCount, type FrontCounts } from './front-counts.js';
import { type RpcError, type RpcMessage, SESSION_ENDED } from './json-rpc.js';
import type { McpStreams } from './mcp-streams.js';
import { MessageStream } from './message-stream.js';
import { takesPriming } from './revision.js';
import type { ForwardedHeaders, Upstream } from './upstream.js';

/** Key of the session's own stream. */
export const OWN_STREAM = 'own';
/** Enough that no two are the same. */
const LABEL_LENGTH = 16;
/** Answers that the client gave to requests of the server, remembered so that a repeat is not passed on. */
const ANSWERED_MAX = 1000;

const ENDED: RpcError = {
  code: SESSION_ENDED,
  message: 'The session ended before the call was answered',
  data: { reason: 'session_ended' },
};

export interface SessionOptions {
  readonly id: string;
  readonly mount: number;
  readonly principal: string;
  readonly upstream: Upstream;
  readonly streams: McpStreams;
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
  readonly upstream: Upstream;
  /** Negotiated; that of the client's request until then. */
  revision = '';
  /** What the server can do, by the names of its capabilities. */
  capabilities: readonly string[] = [];
  usedAtMs = 0;

  readonly #options: SessionOptions;
  readonly #byKey = new Map<string, MessageStream>();
  /** Those that are answered, oldest first. */
  readonly #answered: MessageStream[] = [];
  /** Ids, as JSON, of the server's requests that the client has answered. */
  readonly #answeredRequests = new Set<string>();
  #own: Promise<MessageStream> | null = null;
  #underWay = 0;
  #lastKey = 0;
  #listening = false;
  #ended = false;

  constructor(options: SessionOptions) {
    this.id = options.id;
    this.label = createHash('sha256').update(options.id).digest('base64url').slice(0, LABEL_LENGTH);
    this.mount = options.mount;
    this.principal = options.principal;
    this.upstream = options.upstream;
    this.#options = options;
  }

  get primes(): boolean {
    return takesPriming(this.revision);
  }

  get callsUnderWay(): number {
    return this.#underWay;
  }

  get isEnded(): boolean {
    return this.#ended;
  }

  get hasReader(): boolean {
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
    this.#own ??= this.#open(OWN_STREAM, []).catch((error: unknown) => {
      this.#own = null;
      throw error;
    });
    return this.#own;
  }

  /** Has the server's messages that belong to no call go to the session's own stream from now on. */
  async listen(headers: ForwardedHeaders): Promise<void> {
    const own = await this.ownStream();
    if (this.#listening || this.#ended) return;
    this.#listening = true;
    this.upstream.listen(headers, own);
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

  /** Whether the client answers this request of the server for the first time: a replay may have made it answer twice. */
  isFirstAnswer({ id }: RpcMessage): boolean {
    if (id === null) return true;
    if (this.#answeredRequests.has(id)) return false;
    if (this.#answeredRequests.size >= ANSWERED_MAX) {
      for (const oldest of this.#answeredRequests) {
        this.#answeredRequests.delete(oldest);
        break;
      }
    }
    this.#answeredRequests.add(id);
    return true;
  }

  /** The server behind has begun anew: it counts its requests from the beginning. */
  forgetAnswers(): void {
    this.#answeredRequests.clear();
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
      if (stream.isOwn) stream.close();
      else stream.fail(ENDED);
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

  async #open(key: string, calls: readonly string[]): Promise<MessageStream> {
    if (this.#ended) throw new RequestError('stream_not_found');
    const { id, principal } = this;
    const { streams, ids } = this.#options;
    const ref = await streams.create();
    const stream: MessageStream = new MessageStream({
      streams,
      stream: ref,
      key,
      prefix: ids.prefix({ session: id, principal, key, epoch: ref.epoch, calls }),
      calls,
      answered: () => this.#noteAnswered(stream),
      failed: (error) => this.#options.failed(this, error),
    });
    this.#byKey.set(key, stream);
    if (this.#ended) stream.fail(ENDED);
    return stream;
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
