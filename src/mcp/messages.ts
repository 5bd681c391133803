/**
 * What the edges and the thread of the MCP front say to each other: requests of clients and what becomes of them. The
 * messages of MCP themselves go through streams.
 */

import type { StreamRef } from '../broker/edge-stream.js';

/** A request as an edge hands it on: its form is right, its `Origin` allowed, its sender known. */
export interface ClientRequest {
  readonly method: 'POST' | 'GET' | 'DELETE';
  /** Which of the servers: an index into the setting `mcp`. */
  readonly mount: number;
  /** Who sent it; empty where nobody authenticates. */
  readonly principal: string;
  /** Whether it is of the transport of 2024-11-05: it has no `Mcp-Session-Id`, and is a GET or has an endpoint's query. */
  readonly isSse: boolean;
  /** `Mcp-Session-Id`, or the endpoint's; `MCP-Protocol-Version` and `Last-Event-ID`; empty where there is none. */
  readonly session: string;
  readonly revision: string;
  readonly lastEventId: string;
  /** Headers that the server behind gets to see. */
  readonly forwarded: Readonly<Record<string, string>>;
  /** Of a POST. */
  readonly body: Uint8Array | null;
  /** The edge's name for the connection, should it become a reader; no two edges have the same. */
  readonly reader: number;
}

/** A whole answer. */
export interface WholeAnswer {
  readonly verdict: 'answer';
  readonly status: number;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string;
}

/** Whose messages a reader gets, and how. */
export interface ReaderOf {
  /** Empty where there are no sessions. */
  readonly session: string;
  /** See event-id.ts. Null: messages have no ids, for nobody can resume. */
  readonly prefix: string | null;
  /** Ids of the calls that the stream answers, as JSON; none for the session's own stream. */
  readonly calls: readonly string[];
  /** Whether the client knows events that have an id and no message. */
  readonly primes: boolean;
}

/** A stream to read after a seq. */
export interface FollowStream extends ReaderOf {
  readonly verdict: 'follow';
  readonly stream: StreamRef;
  /** Null: nobody knows what the client has, so it may have missed messages. Only where there are notices. */
  readonly afterSeq: number | null;
  /** Whether the stream was made for this request: nobody comes back to it. */
  readonly isNew: boolean;
  /**
   * Messages for a reader that has missed some: what it had better ask for again. Null: nothing makes up for them, and
   * the reader may not go on.
   */
  readonly notices: readonly string[] | null;
  /** Where a client of HTTP+SSE is to send its messages; null: it knows, or is to be told later, or speaks Streamable HTTP. */
  readonly endpoint: string | null;
  /** What its reader is told when the broker goes down; none: to come back. */
  readonly farewells: readonly string[];
}

/** All that a stream has, which ended before anybody read it. Messages from seq 1 on, without line breaks. */
export interface WholeStream extends ReaderOf {
  readonly verdict: 'whole';
  readonly messages: readonly string[];
}

/** What the client asks to resume is gone, and the calls it was about are answered so. */
export interface LostStream extends ReaderOf {
  readonly verdict: 'lost';
  /** `<epoch>.<seq>` of the last event that the client has. */
  readonly cursor: string;
}

export type Verdict = WholeAnswer | FollowStream | WholeStream | LostStream;

/** How a server behind the front is used now. */
export interface ServerUse {
  readonly path: string;
  readonly sessions: number;
  /** Requests that wait for their answer, batches counted once. */
  readonly calls: number;
  /** Connections that read a stream. */
  readonly readers: number;
  /** Clients that came back to messages that are gone, or were overtaken, since the start. */
  readonly refusedResumes: number;
}

/** From an edge. */
export type FromEdge =
  | {
      readonly kind: 'request';
      readonly id: number;
      readonly request: ClientRequest;
      readonly left: readonly Left[];
    }
  | { readonly kind: 'report'; readonly id: number; readonly left: readonly Left[] }
  | { readonly kind: 'left'; readonly left: readonly Left[] };

/** A reader is off its stream, and nothing more is written to it. */
export interface Left {
  readonly reader: number;
  /** Newest seq that has left the process. */
  readonly deliveredSeq: number;
  /** Whether it was told that what comes next is gone. */
  readonly isRefused: boolean;
}

/** To an edge. */
export type ToEdge =
  | { readonly kind: 'verdict'; readonly id: number; readonly verdict: Verdict }
  | { readonly kind: 'report'; readonly id: number; readonly servers: readonly ServerUse[] }
  /** Another connection reads the stream from now on. Answered by `left`, in any case. */
  | { readonly kind: 'end'; readonly reader: number };
