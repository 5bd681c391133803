/**
 * The calls of a client of HTTP+SSE, which are all answered on the session's own stream. When the client has missed some
 * of that, it is told so by an error for each call whose answer it may not have: nothing else ends a call for it.
 */

import { FrontCount, type FrontCounts } from '../front-counts.js';
import { errorText, HISTORY_GONE, type RpcError, type RpcMessage } from '../json-rpc.js';
import { Newest } from '../newest.js';
import type { OwnStream } from '../session/own-stream.js';
import type { Session } from '../session/session.js';
import type { McpStreams } from '../stream/mcp-streams.js';
import type { MessageStream } from '../stream/message-stream.js';
import { OpenCalls } from '../stream/open-calls.js';
import { dismissLater } from '../upstream/dismissal.js';
import type { MessageSink } from '../upstream/upstream.js';

/** Answers that may be on their way to a client. */
const ANSWERED_MAX = 1000;

const MISSED: RpcError = {
  code: HISTORY_GONE,
  message: 'Messages were lost between two connections; the call may have been carried out',
  data: { reason: 'history_gone' },
};

export interface SseCallsOptions {
  readonly session: Session;
  readonly streams: McpStreams;
  readonly counts: FrontCounts;
}

export class SseCalls {
  readonly #options: SseCallsOptions;
  /** Bounded by the calls of a session. */
  readonly #underWay = new Set<SseCall>();
  /** By the id of an answered call, as JSON: the answer stands at this seq of the own stream, or before it. */
  readonly #answered = new Newest<number>(ANSWERED_MAX);

  constructor(options: SseCallsOptions) {
    this.#options = options;
  }

  /** @returns null when as many calls are under way as there may be. */
  begin(calls: readonly string[]): MessageSink | null {
    const { session } = this.#options;
    if (!session.beginCall()) return null;
    const call: SseCall = new SseCall({
      calls,
      session,
      answer: (id, text) => this.#answer(id, text, session.own),
      over: () => {
        this.#underWay.delete(call);
        session.endCall();
      },
    });
    this.#underWay.add(call);
    return call;
  }

  noteCancelled(id: string): void {
    for (const call of this.#underWay) {
      if (call.cancel(id)) dismissLater(this.#options.session.upstream, call);
    }
  }

  /** The client has all up to this seq of the own stream. */
  received(seq: number): void {
    for (const [id, answeredAt] of this.#answered) if (answeredAt <= seq) this.#answered.delete(id);
  }

  /**
   * The client may lack anything else that came before: ends every call that it may be waiting for.
   * @param own what it reads from now on.
   */
  miss(own: MessageStream): void {
    this.#options.counts.add(FrontCount.missed, 1);
    for (const [id] of [...this.#answered]) void this.#answer(id, errorText(id, MISSED), own);
    this.end(own, MISSED);
  }

  /** Answers every call that is not answered yet. */
  end(own: MessageStream, error: RpcError): void {
    for (const call of this.#underWay) call.end((id) => this.#answer(id, errorText(id, error), own));
  }

  /** @returns a promise that resolves when the next may come. */
  async #answer(id: string, text: string, into: Pick<MessageStream | OwnStream, 'tell'>): Promise<void> {
    this.#answered.set(id, Number.POSITIVE_INFINITY);
    await into.tell(text, id);
    const own = await this.#options.session.own.openOrNull();
    const head = own === null ? undefined : this.#options.streams.positions(own.stream)?.head;
    if (head !== undefined && this.#answered.has(id)) this.#answered.set(id, head);
  }
}

interface SseCallOptions {
  /** Ids, as JSON. */
  readonly calls: readonly string[];
  readonly session: Session;
  readonly answer: (id: string, text: string) => Promise<void>;
  readonly over: () => void;
}

/** The calls of one POST. */
class SseCall implements MessageSink {
  readonly #options: SseCallOptions;
  readonly #open: OpenCalls;

  constructor(options: SseCallOptions) {
    this.#options = options;
    this.#open = new OpenCalls(options.calls);
  }

  get isClosed(): boolean {
    return this.#open.areAnswered;
  }

  push(message: RpcMessage): Promise<void> | void {
    if (this.isClosed) return;
    const { session, answer, over } = this.#options;
    if (message.kind !== 'response') return session.own.push(message);
    if (message.id === null || !this.#open.answer(message.id)) return;
    if (this.isClosed) over();
    return answer(message.id, message.text);
  }

  fail(error: RpcError): void {
    if (this.isClosed) return;
    const { session, answer } = this.#options;
    if (!this.#open.areCancelled) session.noteFailed(error);
    this.end((id) => answer(id, errorText(id, error)));
  }

  end(answer: (id: string) => Promise<void>): void {
    for (const id of this.#open.awaited) void answer(id);
    this.#open.clear();
    this.#options.over();
  }

  /** The client waits for it no longer, and for no error either. @returns whether it waits for none of the others either. */
  cancel(id: string): boolean {
    return this.#open.cancel(id) && this.#open.areCancelled;
  }

  dismiss(): boolean {
    if (this.isClosed || !this.#open.areCancelled) return false;
    this.end(() => Promise.resolve());
    return true;
  }
}
