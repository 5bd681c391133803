/**
 * The front of the MCP servers: what becomes of a client's request (contract 12). It owns the sessions and the
 * connections to the servers; clients' connections are the edges', which ask it and then read the streams it names.
 *
 * Single owner: the thread of the front.
 */

import { isUtf8 } from 'node:buffer';
import { formatCursor } from '../core/cursor.js';
import { RequestError } from '../errors.js';
import { ACCEPTED, JSON_ANSWER, NOTHING_MORE, passFailure, refusal, whole } from './answers.js';
import type { EventIds } from './event-id.js';
import { FrontCount } from './front-counts.js';
import {
  BAD_REQUEST,
  LIMIT_REACHED,
  NO_SESSION,
  type RpcError,
  type RpcMessage,
  readMessages,
} from './json-rpc.js';
import type { McpStreams } from './mcp-streams.js';
import type { MessageStream } from './message-stream.js';
import type { ClientRequest, FollowStream, LostStream, Verdict, WholeAnswer } from './messages.js';
import { Readers, type ReadersOptions } from './readers.js';
import { ASSUMED_REVISION, isResumableRevision, isStatelessRevision } from './revision.js';
import { OWN_STREAM, Session } from './session.js';
import { StatelessCalls, type StatelessCallsOptions } from './stateless-calls.js';
import type { MessageSink, Upstream } from './upstream.js';

/** Ids of the calls in one body, as JSON: they are part of every id of an event. */
const CALL_IDS_LENGTH_MAX = 1000;
const PARSE_ERROR = -32700;
/**
 * When an answer is begun at the latest. A client whose connection breaks before that knows that the call failed; from
 * then on it has an id to come back with.
 */
const BEGIN_MS = 5;

export interface FrontOptions extends ReadersOptions, Pick<StatelessCallsOptions, 'connectStateless'> {
  /** A new session's server, for each mount. */
  readonly connect: (mount: number, session: () => Session) => Upstream;
  readonly streams: McpStreams;
  readonly ids: EventIds;
  readonly sessionsMax: number;
  readonly callsMax: number;
  /** How long a session lives that nobody uses, milliseconds. */
  readonly sessionTtlMs: number;
  readonly newSessionId: () => string;
  /** Told of calls that the front has to answer itself. */
  readonly failed: (session: Session, error: RpcError) => void;
  readonly now: () => number;
}

export class Front {
  readonly #options: FrontOptions;
  readonly #sessions = new Map<string, Session>();
  readonly #readers: Readers;
  readonly #stateless: StatelessCalls;

  constructor(options: FrontOptions) {
    this.#options = options;
    this.#readers = new Readers(options);
    this.#stateless = new StatelessCalls({ ...options, readers: this.#readers });
  }

  async handle(request: ClientRequest): Promise<Verdict> {
    try {
      return await this.#handle(request);
    } catch (error) {
      // There is no room for another stream, or the log cannot take one.
      if (!(error instanceof RequestError)) throw error;
      return refusal(error.status, LIMIT_REACHED, error.message);
    }
  }

  async #handle(request: ClientRequest): Promise<Verdict> {
    if (isStatelessRevision(request.revision)) return this.#stateless.pass(request);
    if (request.method === 'POST') return this.#post(request, request.body ?? new Uint8Array());
    const session = this.#sessionOf(request);
    if (!(session instanceof Session)) return session;
    return request.method === 'GET' ? this.#get(session, request) : this.#delete(session);
  }

  /** A reader is off its stream. */
  left(reader: number, deliveredSeq: number): void {
    this.#readers.left(reader, deliveredSeq);
    this.#stateless.left(reader);
  }

  /** Ends sessions that nobody uses, and keeps what the others need. Call it every few seconds. */
  sweep(): void {
    const nowMs = this.#options.now();
    for (const session of this.#sessions.values()) {
      if (session.hasReader || session.callsUnderWay > 0) session.usedAtMs = nowMs;
      if (nowMs - session.usedAtMs < this.#options.sessionTtlMs) session.keep();
      else void this.#end(session);
    }
  }

  /** Ends all sessions: the process goes down. */
  async close(): Promise<void> {
    await Promise.all([...this.#sessions.values()].map((session) => this.#end(session)));
  }

  async #post(request: ClientRequest, body: Uint8Array): Promise<Verdict> {
    const messages = isUtf8(body) ? readMessages(Buffer.from(body).toString()) : null;
    if (messages === null) return refusal(400, PARSE_ERROR, 'expected one message of JSON-RPC 2.0 in UTF-8');
    const first = messages[0] as RpcMessage;
    if (messages.some(({ method }) => method === 'initialize')) {
      return messages.length === 1 && first.id !== null
        ? this.#initialize(request, body, first)
        : refusal(400, BAD_REQUEST, 'initialize comes alone');
    }
    const session = this.#sessionOf(request);
    if (!(session instanceof Session)) return session;
    const calls = messages.flatMap(({ kind, id }) => (kind === 'request' && id !== null ? [id] : []));
    return calls.length > 0
      ? this.#call(session, request, body, calls)
      : this.#pass(session, request, body, messages);
  }

  async #initialize(request: ClientRequest, body: Uint8Array, message: RpcMessage): Promise<Verdict> {
    const call = message.id as string;
    const { streams, ids, callsMax, sessionsMax, counts, failed } = this.#options;
    if (this.#sessions.size >= sessionsMax) {
      counts.add(FrontCount.refusedSessions, 1);
      return refusal(503, LIMIT_REACHED, 'too many sessions', call);
    }
    const { mount, principal } = request;
    const upstream = this.#options.connect(mount, () => session);
    const id = this.#options.newSessionId();
    const session: Session = new Session({
      id,
      mount,
      principal,
      upstream,
      streams,
      ids,
      callsMax,
      counts,
      failed,
    });
    session.usedAtMs = this.#options.now();
    this.#sessions.set(id, session);
    counts.set(FrontCount.sessions, this.#sessions.size);
    const answer = await upstream
      .initialize(body, request.forwarded, intoOwnStream(session))
      .catch((error: unknown) => passFailure(error, call));
    if ('status' in answer || answer.value === undefined) {
      void this.#end(session);
      return 'status' in answer ? whole(answer) : { ...JSON_ANSWER, body: answer.text };
    }
    const { protocolVersion, capabilities } = (answer.value ?? {}) as Record<string, unknown>;
    counts.add(FrontCount.sessionsBegun, 1);
    session.revision = typeof protocolVersion === 'string' ? protocolVersion : ASSUMED_REVISION;
    session.capabilities = Object.keys((capabilities ?? {}) as object);
    return { ...JSON_ANSWER, headers: { ...JSON_ANSWER.headers, 'Mcp-Session-Id': id }, body: answer.text };
  }

  async #call(
    session: Session,
    request: ClientRequest,
    body: Uint8Array,
    calls: readonly string[],
  ): Promise<Verdict> {
    if (calls.join().length > CALL_IDS_LENGTH_MAX) return refusal(400, BAD_REQUEST, 'the ids are too long');
    const stream = await session.openCall(calls);
    if (stream === null) {
      this.#options.counts.add(FrontCount.refusedCalls, 1);
      return refusal(429, LIMIT_REACHED, 'too many calls under way', calls[0]);
    }
    this.#options.counts.add(FrontCount.calls, 1);
    this.#readers.first(stream, request.reader);
    session.upstream.call(body, request.forwarded, stream);
    // A quick answer goes out whole: each time that another thread is woken costs more than the rest of the call.
    await stream.closedWithin(BEGIN_MS);
    return { ...follow(session, stream, 0), isNew: true };
  }

  /** Notifications, and answers to requests of the server: their order is that of their answers. */
  async #pass(
    session: Session,
    request: ClientRequest,
    body: Uint8Array,
    messages: readonly RpcMessage[],
  ): Promise<Verdict> {
    for (const message of messages) noteCancelled(session, message);
    const isRepeat = messages.every(
      (message) => message.kind === 'response' && !session.isFirstAnswer(message),
    );
    if (isRepeat) return ACCEPTED;
    const reply = await session.upstream
      .send(body, request.forwarded)
      .catch((error: unknown) => passFailure(error, 'null'));
    return reply.status < 300 ? ACCEPTED : whole(reply);
  }

  async #get(session: Session, request: ClientRequest): Promise<Verdict> {
    if (request.lastEventId === '') {
      await session.listen(request.forwarded);
      const own = await session.ownStream();
      return this.#read(session, own, () => own.deliveredSeq, request);
    }
    const position = this.#options.ids.read(request.lastEventId, {
      session: session.id,
      principal: session.principal,
    });
    if (position === null) return refusal(400, BAD_REQUEST, 'Last-Event-ID was not given to this session');
    if (position.seq === null) return NOTHING_MORE;
    const stream = session.find(position);
    if (stream !== null) return this.#read(session, stream, () => position.seq, request);
    if (position.key === OWN_STREAM)
      return this.#read(session, await session.ownStream(), () => null, request);
    const { key, epoch, calls } = position;
    const { id, principal, primes } = session;
    const prefix = this.#options.ids.prefix({ session: id, principal, key, epoch, calls });
    const cursor = formatCursor(epoch, position.seq);
    return { verdict: 'lost', session: id, prefix, calls, primes, cursor } satisfies LostStream;
  }

  /** @param afterSeq asked when nobody else reads the stream any more. */
  async #read(
    session: Session,
    stream: MessageStream,
    afterSeq: () => number | null,
    { reader }: ClientRequest,
  ): Promise<Verdict> {
    session.usedAtMs = this.#options.now();
    const isNewest = await this.#readers.takeOver(stream, reader);
    return isNewest
      ? follow(session, stream, afterSeq())
      : refusal(503, BAD_REQUEST, 'another connection took over');
  }

  #delete(session: Session): Verdict {
    void this.#end(session);
    return { verdict: 'answer', status: 200, headers: {}, body: '' };
  }

  #end(session: Session): Promise<void> {
    this.#sessions.delete(session.id);
    this.#options.counts.set(FrontCount.sessions, this.#sessions.size);
    return session.end();
  }

  /** The session that a request names, if it may. That of somebody else is as good as none. */
  #sessionOf({ session: id, principal, mount, revision }: ClientRequest): Session | WholeAnswer {
    if (id === '') return refusal(400, BAD_REQUEST, 'Mcp-Session-Id is missing');
    const session = this.#sessions.get(id);
    if (session === undefined || session.principal !== principal || session.mount !== mount) {
      return refusal(404, NO_SESSION, 'Session not found');
    }
    if (!isResumableRevision(revision === '' ? ASSUMED_REVISION : revision)) {
      return refusal(400, BAD_REQUEST, `unsupported MCP-Protocol-Version: ${revision.slice(0, 32)}`);
    }
    session.usedAtMs = this.#options.now();
    return session;
  }
}

function follow(session: Session, stream: MessageStream, afterSeq: number | null): FollowStream {
  const { id, primes, capabilities } = session;
  const { prefix, calls } = stream;
  const notices = stream.isOwn ? changeNotices(capabilities) : [];
  return {
    verdict: 'follow',
    session: id,
    prefix,
    calls,
    primes,
    stream: stream.stream,
    afterSeq,
    isNew: false,
    notices,
  };
}

/** What a client is told that has missed messages: that what it knows of the server may be old. */
function changeNotices(capabilities: readonly string[]): string[] {
  return ['tools', 'prompts', 'resources']
    .filter((name) => capabilities.includes(name))
    .map((name) => `{"jsonrpc":"2.0","method":"notifications/${name}/list_changed"}`);
}

function noteCancelled(session: Session, { method, value }: RpcMessage): void {
  if (method !== 'notifications/cancelled') return;
  const { requestId } = (value ?? {}) as { requestId?: unknown };
  if (requestId !== undefined) session.noteCancelled(JSON.stringify(requestId));
}

function intoOwnStream(session: Session): MessageSink {
  return {
    isClosed: false,
    push: (message) => session.ownStream().then((own) => own.push(message)),
    fail: () => undefined,
  };
}
