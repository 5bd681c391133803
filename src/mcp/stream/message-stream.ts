/**
 * One stream of messages to a client: what answers a POST, or the session's own. What comes goes into a Gapless stream,
 * in the order in which it came and whether or not anybody reads; readers follow from there.
 *
 * Per message: one append, and no promise while there is room.
 */

import type { StreamRef } from '../../broker/edge-stream.js';
import { errorText, LIMIT_REACHED, type RpcError, type RpcMessage } from '../json-rpc.js';
import type { Reply } from '../upstream/upstream.js';
import type { Backlog } from './backlog.js';
import { EarlyMessages } from './early-messages.js';
import type { McpStreams } from './mcp-streams.js';
import { OpenCalls } from './open-calls.js';
import { isNote, messageType, NOTE_TYPES } from './stream-notes.js';
import { StreamWriter, type Taken } from './stream-writer.js';

/**
 * When an answer is begun at the latest. A client whose connection breaks before that knows that the call failed; from
 * then on it has an id to come back with.
 */
const BEGIN_MS = 5;
/** The same for a call whose client shows the server a credential, which the server may refuse by a status. */
const JUDGED_MS = 500;

export interface MessageStreamOptions {
  readonly streams: McpStreams;
  readonly stream: StreamRef;
  readonly backlog: Backlog;
  readonly key: string;
  /** See event-id.ts. Null: its messages have no ids. */
  readonly prefix: string | null;
  /** Ids of the calls that it answers, as JSON; none: it is the session's own, and ends with it. */
  readonly calls: readonly string[];
  /** What its readers are told when the broker goes down; none: they are to come back. */
  readonly farewells?: readonly string[];
  /** Called once, when all calls are answered. */
  readonly answered: () => void;
  /** Called before that when the front has to answer them itself. */
  readonly failed: (error: RpcError) => void;
  /** The stream has a hole at its end and is gone: who asks for it is told so. */
  readonly lost: () => void;
  /** Whether another process may go on with it: what it has to know stands beside the messages. */
  readonly isKept?: boolean;
  /** What became of it in another process. */
  readonly before?: CallsBefore;
  /** Called when nobody reads it any more. */
  readonly left?: () => void;
}

/** What became of a stream before this process; calls by their ids as JSON. */
export interface CallsBefore {
  readonly answered: ReadonlySet<string>;
  readonly cancelled: ReadonlySet<string>;
  readonly endsWithNote: boolean;
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
  readonly prefix: string | null;
  readonly calls: readonly string[];
  readonly farewells: readonly string[];
  /** The newest; null: none. */
  reader: ReaderName | null = null;
  /** Newest seq that is known to have left for a client: where one begins that names no event. */
  deliveredSeq = 0;
  /** See the options. */
  lost: () => void;
  /** Whether what was taken last is a note: who has the last message has all, though not the last event. */
  endsWithNote: boolean;

  readonly #streams: McpStreams;
  readonly #open: OpenCalls;
  readonly #isKept: boolean;
  readonly #left: (() => void) | undefined;
  readonly #answered: () => void;
  readonly #failed: (error: RpcError) => void;
  readonly #early = new EarlyMessages();
  readonly #writer: StreamWriter;
  #closed = false;
  #hasBegun = false;
  #isAccepted = false;
  #refusal: Reply | null = null;
  /** Called when something of that has changed. */
  #changed: (() => void) | null = null;

  constructor(options: MessageStreamOptions) {
    this.stream = options.stream;
    this.key = options.key;
    this.prefix = options.prefix;
    this.calls = options.calls;
    this.farewells = options.farewells ?? [];
    this.#streams = options.streams;
    const { before } = options;
    this.#open = new OpenCalls(options.calls);
    if (before !== undefined) this.#open.restore(options.calls, before);
    this.endsWithNote = before?.endsWithNote ?? false;
    this.#isKept = options.isKept === true;
    this.#left = options.left;
    this.#answered = options.answered;
    this.#failed = options.failed;
    this.lost = options.lost;
    const { streams, stream, backlog } = options;
    this.#writer = new StreamWriter({
      streams,
      stream,
      backlog,
      early: this.#early,
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

  /** What the server has answered in the place of messages; null: nothing. */
  get refusal(): Reply | null {
    return this.#refusal;
  }

  /** The client waits for this call no longer. @returns whether it waits for none of the others either. */
  cancel(call: string): boolean {
    if (!this.#open.cancel(call)) return false;
    this.note('cancelled', call);
    return this.#open.areCancelled;
  }

  /** Ends it if nobody waits for an answer. @returns whether it was under way. */
  dismiss(): boolean {
    if (this.#closed || !this.#open.areCancelled) return false;
    this.#open.clear();
    this.close();
    return true;
  }

  accepted(): void {
    this.#isAccepted = true;
    this.#changed?.();
  }

  refused(reply: Reply): boolean {
    if (this.#hasBegun || this.#closed) return false;
    this.#refusal = reply;
    this.#open.clear();
    this.close();
    return true;
  }

  /**
   * Takes a message. What answers none of the calls, and what comes after the last answer, is dropped.
   * @param reached where the server's stream can be taken up after it; null: nobody knows.
   * @returns a promise where there is no room now: resolves when the next may be pushed.
   */
  push(message: RpcMessage, reached: string | null = null): Promise<void> | void {
    if (this.#closed) return;
    if (message.kind === 'response') {
      if (message.id === null || !this.#open.answer(message.id)) return;
    }
    const call = message.kind === 'response' ? message.id : null;
    const room = this.tell(message.text, call, this.#isKept ? messageType(reached) : null);
    if (!this.isOwn && this.#open.areAnswered) this.close();
    return room;
  }

  /** The server has said where its stream can be taken up, and no message. */
  reached(id: string): void {
    this.note('reached', id);
  }

  /** Writes down what another process has to know, where there may be one. */
  note(type: keyof typeof NOTE_TYPES, text: string): void {
    if (this.#isKept) void this.tell(text, null, NOTE_TYPES[type]);
  }

  /** @param deliveredSeq newest seq that has left for the reader who is gone; 0: none. */
  left(reader: ReaderName, deliveredSeq: number): void {
    this.deliveredSeq = Math.max(this.deliveredSeq, deliveredSeq);
    if (this.reader !== reader) return;
    this.reader = null;
    this.#left?.();
  }

  /** Answers every call that is not answered yet. Of those that the client has cancelled it expects no answer. */
  fail(error: RpcError): void {
    if (this.#closed) return;
    if (!this.#open.areCancelled) this.#failed(error);
    for (const call of this.#open.awaited) void this.tell(errorText(call, error), call);
    this.#open.clear();
    this.close();
  }

  /** Ends it once all that was taken is appended. */
  close(): void {
    if (this.#closed) return;
    this.#writer.close();
    this.#over();
  }

  /** Goes on with what another process has left. */
  resume(before: CallsBefore): void {
    this.#open.restore(this.calls, before);
    this.endsWithNote = before.endsWithNote;
    this.#closed = false;
  }

  /** Another process will go on with it: takes nothing more, and leaves the stream as it is. */
  suspend(): void {
    this.#closed = true;
  }

  /**
   * Takes a message as it is.
   * @param call that it answers, as JSON; null: none.
   * @param type of the event; null: it is a message of MCP.
   * @returns as `push`
   */
  tell(text: string, call: string | null = null, type: string | null = null): Promise<void> | void {
    if (this.#closed) return;
    this.endsWithNote = isNote(type);
    return this.#writer.append({ text, call, type });
  }

  /**
   * Waits until its answer is to be begun: soon, if it does not end before. Once, and before there is a reader.
   * @param isJudged whether the client shows the server who it is: then until that one has begun, or refused.
   * @returns all that is in it, if it has ended and that is little; null: it is to be read.
   */
  async beginning(isJudged = false): Promise<readonly string[] | null> {
    if (isJudged) await this.#within(JUDGED_MS, () => this.#closed || this.#isAccepted);
    await this.#within(BEGIN_MS, () => this.#closed);
    this.#hasBegun = true;
    const messages = this.#early.take();
    return this.#writer.hasEnded ? messages : null;
  }

  async #within(ms: number, isSo: () => boolean): Promise<void> {
    if (isSo()) return;
    await new Promise<void>((resolve) => {
      const timer = setTimeout(resolve, ms);
      this.#changed = () => {
        if (!isSo()) return;
        clearTimeout(timer);
        resolve();
      };
    });
    this.#changed = null;
  }

  #over(): void {
    this.#closed = true;
    this.#answered();
    this.#changed?.();
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
    this.#open.clear();
    if (!this.#closed) this.#over();
    this.lost();
  }
}
