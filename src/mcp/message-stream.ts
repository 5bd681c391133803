/**
 * One stream of messages to a client: what answers a POST, or the session's own. What comes goes into a Gapless stream,
 * in the order in which it came and whether or not anybody reads; readers follow from there.
 *
 * Per message: one append, and no promise while there is room.
 */

import type { StreamRef } from '../broker/edge-stream.js';
import { errorText, LIMIT_REACHED, type RpcError, type RpcMessage } from './json-rpc.js';
import type { McpStreams } from './mcp-streams.js';

/** How soon an append is tried again for which there was no room. */
const AGAIN_MS = 10;

export interface MessageStreamOptions {
  readonly streams: McpStreams;
  readonly stream: StreamRef;
  readonly key: string;
  /** See event-id.ts. */
  readonly prefix: string;
  /** Ids of the calls that it answers, as JSON; none: it is the session's own, and ends with it. */
  readonly calls: readonly string[];
  /** Called once, when all calls are answered. */
  readonly answered: () => void;
  /** Called before that when the front has to answer them itself. */
  readonly failed: (error: RpcError) => void;
}

/** A message on its way into the stream. */
interface Taken {
  readonly text: string;
  /** The call that it answers, as JSON; null: none. */
  readonly call: string | null;
}

const TOO_LARGE: RpcError = {
  code: LIMIT_REACHED,
  message: 'A message of the server is larger than a stream can hold',
  data: { reason: 'message_too_large' },
};

/** Which connection reads a stream; see messages.ts. */
export type ReaderName = number;

export class MessageStream {
  readonly stream: StreamRef;
  readonly key: string;
  readonly prefix: string;
  readonly calls: readonly string[];
  /** The newest; null: none. */
  reader: ReaderName | null = null;
  /** Newest seq that is known to have left for a client: where one begins that names no event. */
  deliveredSeq = 0;
  /** Calls that the client has cancelled: their answer may never come, and nobody waits for it. */
  readonly cancelled = new Set<string>();

  readonly #streams: McpStreams;
  readonly #unanswered: Set<string>;
  readonly #answered: () => void;
  readonly #failed: (error: RpcError) => void;
  /** Taken and not appended yet. Bounded: who pushes waits for `#room`. */
  readonly #waiting: Taken[] = [];
  #room: Promise<void> | null = null;
  #closed = false;
  #closedHook: (() => void) | null = null;

  constructor(options: MessageStreamOptions) {
    this.stream = options.stream;
    this.key = options.key;
    this.prefix = options.prefix;
    this.calls = options.calls;
    this.#streams = options.streams;
    this.#unanswered = new Set(options.calls);
    this.#answered = options.answered;
    this.#failed = options.failed;
  }

  get isOwn(): boolean {
    return this.calls.length === 0;
  }

  /** Whether no message is taken any more: all calls are answered, or the session is over. */
  get isClosed(): boolean {
    return this.#closed;
  }

  awaits(call: string): boolean {
    return this.#unanswered.has(call);
  }

  /**
   * Takes a message. What answers none of the calls, and what comes after the last answer, is dropped.
   * @returns a promise where there is no room now: resolves when the next may be pushed.
   */
  push(message: RpcMessage): Promise<void> | void {
    if (this.#closed) return;
    if (message.kind === 'response') {
      if (message.id === null || !this.#unanswered.delete(message.id)) return;
    }
    const room = this.#append({ text: message.text, call: message.kind === 'response' ? message.id : null });
    if (!this.isOwn && this.#unanswered.size === 0) this.close();
    return room;
  }

  /** Answers every call that is not answered yet. Of those that the client has cancelled it expects no answer. */
  fail(error: RpcError): void {
    if (this.#closed) return;
    this.#failed(error);
    for (const call of this.#unanswered) {
      if (!this.cancelled.has(call)) this.#append({ text: errorText(call, error), call });
    }
    this.#unanswered.clear();
    this.close();
  }

  /** Ends it once all that was taken is appended. */
  close(): void {
    if (this.#closed) return;
    this.#closed = true;
    if (this.#room === null) this.#streams.close(this.stream);
    else void this.#room.then(() => this.#streams.close(this.stream));
    this.#answered();
    this.#closedHook?.();
  }

  /** Resolves when it is closed, or after so long. */
  closedWithin(ms: number): Promise<void> {
    if (this.#closed) return Promise.resolve();
    return new Promise((resolve) => {
      const timer = setTimeout(resolve, ms);
      this.#closedHook = () => {
        clearTimeout(timer);
        resolve();
      };
    });
  }

  #append(taken: Taken): Promise<void> | void {
    if (this.#room === null) {
      if (this.#tryAppend(taken)) return;
      this.#room = this.#appendLater();
    }
    this.#waiting.push(taken);
    return this.#room;
  }

  async #appendLater(): Promise<void> {
    for (;;) {
      await new Promise((resolve) => setTimeout(resolve, AGAIN_MS));
      while (this.#waiting.length > 0 && this.#tryAppend(this.#waiting[0] as Taken)) this.#waiting.shift();
      if (this.#waiting.length > 0) continue;
      this.#room = null;
      return;
    }
  }

  /** False: try again later. Into a stream that is gone nothing comes: who asks for it is told so. */
  #tryAppend({ text, call }: Taken): boolean {
    const appended = this.#streams.append(this.stream, text);
    if (appended === 'too_large') this.#refuse(call);
    return appended !== 'later';
  }

  /** What cannot be told is not left out in silence: its call ends. */
  #refuse(call: string | null): void {
    if (call !== null) this.#streams.append(this.stream, errorText(call, TOO_LARGE));
    else if (!this.isOwn) this.fail(TOO_LARGE);
  }
}
