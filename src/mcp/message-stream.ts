/**
 * One stream of messages to a client: what answers a POST, or the session's own. What comes goes into a Gapless stream,
 * in the order in which it came and whether or not anybody reads; readers follow from there.
 *
 * Per message: one append, and no promise while there is room.
 */

import type { StreamRef } from '../broker/edge-stream.js';
import type { Backlog } from './backlog.js';
import { errorText, LIMIT_REACHED, type RpcError, type RpcMessage } from './json-rpc.js';
import type { McpStreams } from './mcp-streams.js';
import { StreamWriter, type Taken } from './stream-writer.js';

export interface MessageStreamOptions {
  readonly streams: McpStreams;
  readonly stream: StreamRef;
  readonly backlog: Backlog;
  readonly key: string;
  /** See event-id.ts. */
  readonly prefix: string;
  /** Ids of the calls that it answers, as JSON; none: it is the session's own, and ends with it. */
  readonly calls: readonly string[];
  /** Called once, when all calls are answered. */
  readonly answered: () => void;
  /** Called before that when the front has to answer them itself. */
  readonly failed: (error: RpcError) => void;
  /** The stream has a hole at its end and is gone: who asks for it is told so. */
  readonly lost: () => void;
}

const TOO_LARGE: RpcError = {
  code: LIMIT_REACHED,
  message: 'A message of the server is larger than a stream can hold',
  data: { reason: 'message_too_large' },
};
const NO_ROOM: RpcError = {
  code: LIMIT_REACHED,
  message: 'There was no room for what the server said',
  data: { reason: 'no_room' },
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
  /** See the options. */
  lost: () => void;
  /** Calls that the client has cancelled: their answer may never come, and nobody waits for it. */
  readonly cancelled = new Set<string>();

  readonly #streams: McpStreams;
  readonly #unanswered: Set<string>;
  readonly #answered: () => void;
  readonly #failed: (error: RpcError) => void;
  readonly #writer: StreamWriter;
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
    this.lost = options.lost;
    const { streams, stream, backlog } = options;
    this.#writer = new StreamWriter({
      streams,
      stream,
      backlog,
      refused: (taken) => this.#refused(taken),
      gaveUp: () => this.#giveUp(),
    });
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
    const room = this.tell(message.text, message.kind === 'response' ? message.id : null);
    if (!this.isOwn && this.#unanswered.size === 0) this.close();
    return room;
  }

  /** Answers every call that is not answered yet. Of those that the client has cancelled it expects no answer. */
  fail(error: RpcError): void {
    if (this.#closed) return;
    this.#failed(error);
    for (const call of this.#unanswered) {
      if (!this.cancelled.has(call)) void this.tell(errorText(call, error), call);
    }
    this.#unanswered.clear();
    this.close();
  }

  /** Ends it once all that was taken is appended. */
  close(): void {
    if (this.#closed) return;
    this.#writer.close();
    this.#over();
  }

  /**
   * Takes a message as it is.
   * @param call that it answers, as JSON; null: none.
   * @param type of the event; null: it is a message of MCP.
   * @returns as `push`
   */
  tell(text: string, call: string | null = null, type: string | null = null): Promise<void> | void {
    if (!this.#closed) return this.#writer.append({ text, call, type });
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

  #over(): void {
    this.#closed = true;
    this.#answered();
    this.#closedHook?.();
  }

  /** What cannot be told is not left out in silence: its call ends. */
  #refused({ call }: Taken): void {
    if (call !== null) void this.#writer.append({ text: errorText(call, TOO_LARGE), call, type: null });
    else if (!this.isOwn) this.fail(TOO_LARGE);
  }

  /** There is no room for an error either: without its stream, whoever reads it or comes for it is told by the edge. */
  #giveUp(): void {
    if (!this.isOwn) this.#failed(NO_ROOM);
    this.#streams.remove(this.stream);
    this.#unanswered.clear();
    if (!this.#closed) this.#over();
    this.lost();
  }
}
