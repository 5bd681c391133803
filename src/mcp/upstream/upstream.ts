/**
 * The server behind the front, as one session sees it.
 */

import type { RpcError, RpcMessage } from '../json-rpc.js';
import { UPSTREAM_FAILED } from '../json-rpc.js';

/** Where messages of the server go. */
export interface MessageSink {
  /** Whether nothing is taken any more: all that was waited for has come. */
  readonly isClosed: boolean;
  /**
   * @param reached where the server's stream can be taken up after this message; null: nobody knows.
   * @returns a promise where there is no room: nothing more is pushed until it resolves.
   */
  push(message: RpcMessage, reached?: string | null): Promise<void> | void;
  /** The server has said where its stream can be taken up, and no message. */
  reached?(id: string): void;
  /** The server will not say what was waited for. */
  fail(error: RpcError): void;
  /** The server has begun an answer: it does not refuse the request. */
  accepted?(): void;
  /** The server has refused the request for who asks. @returns false: nobody can be told by a status any more. */
  refused?(reply: Reply): boolean;
}

/** For what nobody waits for. */
export const NOWHERE: MessageSink = { isClosed: false, push: () => undefined, fail: () => undefined };

/** Begins what a client of its own accord begins with. */
export const INITIALIZED: Uint8Array = Buffer.from('{"jsonrpc":"2.0","method":"notifications/initialized"}');

/** What the server answered to what it answers in one piece. */
export interface Reply {
  readonly status: number;
  /** Headers that the client should see as well. */
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string;
}

/** How long a server may keep a stream open after its last answer, milliseconds. */
export const LINGER_MS = 1000;

export type ForwardedHeaders = Readonly<Record<string, string>>;

/** What another process has to know to go on with a session of a server. */
export interface UpstreamSession {
  /** What began it, to begin it again. */
  readonly beginning: { readonly body: string; readonly headers: ForwardedHeaders };
  /** The server's name for it; null: it has none. */
  readonly id: string | null;
  /** As the server has it; null: it did not say. */
  readonly revision: string | null;
}

export interface Upstream {
  /** Null before it has begun. */
  readonly session: UpstreamSession | null;
  /**
   * Begins the session. What the server says before its answer goes to `before`.
   * @returns its answer: a message, or what it said instead.
   * @throws {UpstreamError}
   */
  initialize(body: Uint8Array, headers: ForwardedHeaders, before: MessageSink): Promise<RpcMessage | Reply>;
  /** Sends requests; what comes of them goes to the sink, and be it an error. */
  call(body: Uint8Array, headers: ForwardedHeaders, sink: MessageSink): void;
  /**
   * Goes on with requests that another process has sent.
   * @param reached where the server's stream can be taken up; null: nobody knows.
   */
  resume(reached: string | null, headers: ForwardedHeaders, sink: MessageSink): void;
  /** Nobody waits any more for what was to go to this sink. */
  dismiss(sink: MessageSink): void;
  /** Sends what is not answered by messages. @throws {UpstreamError} */
  send(body: Uint8Array, headers: ForwardedHeaders): Promise<Reply>;
  /** Has messages that belong to no call go to the sink from now on. Once. @param reached as in `resume` */
  listen(headers: ForwardedHeaders, sink: MessageSink, reached: string | null): void;
  /** The session is over. Resolves when the server knows, or is gone. */
  end(): Promise<void>;
  /** Another process has a part in the session, and has begun it anew at the server. */
  adopt(session: UpstreamSession): void;
  /** Another process will go on with the session: hangs up, and says nothing to the server. */
  suspend(): Promise<void>;
}

export type UpstreamReason =
  /** No connection, or it broke before there was an answer. */
  | 'unreachable'
  /** The connection broke in the midst of an answer. */
  | 'broken'
  /** Nothing came for longer than `mcpSilenceMs`. */
  | 'silent'
  /** An HTTP status that is an error. */
  | 'refused'
  /** What came is no message of MCP, or not what was asked for. */
  | 'rubbish'
  | 'message_too_large'
  /** The server does not know the session any more, and did not take it up again. */
  | 'session_lost';

/** The server failed. */
export class UpstreamError extends Error {
  readonly reason: UpstreamReason;
  /** The HTTP status, where it was that. */
  readonly status: number | undefined;

  constructor(reason: UpstreamReason, status?: number) {
    super(`the MCP server failed: ${reason}${status === undefined ? '' : ` (HTTP ${status})`}`);
    this.reason = reason;
    this.status = status;
  }

  /** As it is told to the client. */
  toRpcError(): RpcError {
    const { reason, status, message } = this;
    return { code: UPSTREAM_FAILED, message, data: status === undefined ? { reason } : { reason, status } };
  }
}
