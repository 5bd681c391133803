/**
 * The front of the MCP servers: what becomes of a client's request (contract 12). It owns the sessions and the
 * connections to the servers; clients' connections are the edges', which ask it and then read the streams it names.
 *
 * Single owner: the thread of the front.
 */

import { isUtf8 } from 'node:buffer';
import { RequestError } from '../errors.js';
import { JSON_ANSWER, NOTHING_MORE, PARSE_ERROR, refusal, TAKEN_OVER, whole } from './answers.js';
import { FrontCount } from './front-counts.js';
import { BAD_REQUEST, LIMIT_REACHED, type RpcMessage, readMessages } from './json-rpc.js';
import type { ClientRequest, Left, ServerUse, Verdict } from './messages.js';
import { Readers, type ReadersOptions } from './readers.js';
import { isStatelessRevision } from './revision.js';
import { ServerUses } from './server-use.js';
import { beginAtServer, callsIn, cancelledIn, passOn } from './session/relay.js';
import { Session } from './session/session.js';
import type { SessionRecord } from './session/session-record.js';
import { Sessions, type SessionsOptions } from './session/sessions.js';
import { SseTransport, type SseTransportOptions } from './sse/sse-transport.js';
import { DurableCalls } from './stateless/durable-calls.js';
import { StatelessCalls, type StatelessCallsOptions } from './stateless/stateless-calls.js';
import { hasMessageAfter } from './stream/answered-streams.js';
import type { MessageStream } from './stream/message-stream.js';
import { OWN_STREAM } from './stream/stream-keys.js';
import { follow, lostStream, wholeStream } from './stream/stream-verdicts.js';

/** Ids of the calls in one body, as JSON: they are part of every id of an event. */
const CALL_IDS_LENGTH_MAX = 1000;

export interface FrontOptions
  extends ReadersOptions,
    SessionsOptions,
    Pick<SseTransportOptions, 'paths'>,
    Pick<StatelessCallsOptions, 'connectStateless'> {
  /** How long calls of 2026-07-28 outlive their connection, milliseconds; 0: not at all. */
  readonly responseGraceMs: number;
}

export class Front {
  readonly #options: FrontOptions;
  readonly #sessions: Sessions;
  readonly #readers: Readers;
  readonly #sse: SseTransport;
  readonly #stateless: StatelessCalls;
  readonly #uses: ServerUses;
  readonly #durable: DurableCalls | null;

  constructor(options: FrontOptions) {
    this.#options = options;
    this.#sessions = new Sessions(options);
    this.#readers = new Readers(options);
    this.#uses = new ServerUses(options);
    const shared = { ...options, sessions: this.#sessions, readers: this.#readers };
    this.#sse = new SseTransport(shared);
    this.#durable =
      options.responseGraceMs === 0
        ? null
        : new DurableCalls({ ...shared, durableCallsMax: options.sessionsMax });
    this.#stateless = new StatelessCalls({ ...shared, durable: this.#durable });
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

  /** A reader is off its stream. */
  left({ reader, deliveredSeq, isRefused }: Left): void {
    const mount = this.#readers.left(reader, deliveredSeq);
    if (isRefused && mount !== null) this.#uses.noteRefused(mount);
    this.#stateless.left(reader);
  }

  /** How its servers are used now. */
  report(): ServerUse[] {
    return this.#uses.report(this.#sessions, this.#readers.mounts());
  }

  /** Ends sessions that nobody uses, and keeps what the others need. Call it every few seconds. */
  sweep(): void {
    this.#sessions.sweep();
    this.#durable?.sweep();
  }

  /** The process goes down. */
  close(): Promise<void> {
    this.#durable?.close();
    return this.#sessions.close();
  }

  /** Takes up a session that another process has left; null: its server is not behind this front any more. */
  restore(record: SessionRecord): Session | null {
    return this.#sessions.restore(record);
  }

  async #handle(request: ClientRequest): Promise<Verdict> {
    if (isStatelessRevision(request.revision)) return this.#stateless.pass(request);
    if (request.isSse) return this.#sse.handle(request);
    if (request.method === 'POST') return this.#post(request, request.body ?? new Uint8Array());
    const session = await this.#sessions.meet(request);
    if (!(session instanceof Session)) return session;
    return request.method === 'GET' ? this.#get(session, request) : this.#delete(session);
  }

  async #post(request: ClientRequest, body: Uint8Array): Promise<Verdict> {
    const messages = isUtf8(body) ? readMessages(Buffer.from(body).toString()) : null;
    if (messages === null) return refusal(400, PARSE_ERROR, 'expected one message of JSON-RPC 2.0 in UTF-8');
    const first = messages[0] as RpcMessage;
    if (messages.some(({ method }) => method === 'initialize')) {
      return messages.length === 1 && first.id !== null
        ? this.#initialize(request, first)
        : refusal(400, BAD_REQUEST, 'initialize comes alone');
    }
    const session = await this.#sessions.meet(request);
    if (!(session instanceof Session)) return session;
    for (const call of cancelledIn(messages)) session.noteCancelled(call);
    const calls = callsIn(messages);
    return calls.length > 0 ? this.#call(session, request, body, calls) : passOn(session, request, messages);
  }

  async #initialize(request: ClientRequest, message: RpcMessage): Promise<Verdict> {
    const call = message.id as string;
    const session = this.#sessions.begin(request, 'streamable', call);
    if (!(session instanceof Session)) return session;
    const answer = await beginAtServer(session, request, call, this.#options.counts);
    if ('status' in answer || answer.value === undefined) {
      this.#sessions.end(session);
      return 'status' in answer ? whole(answer) : { ...JSON_ANSWER, body: answer.text };
    }
    await session.keeper?.begin().catch((error: unknown) => {
      this.#sessions.end(session);
      throw error;
    });
    const headers = { ...JSON_ANSWER.headers, 'Mcp-Session-Id': session.id };
    return { ...JSON_ANSWER, headers, body: answer.text };
  }

  async #call(
    session: Session,
    request: ClientRequest,
    body: Uint8Array,
    calls: readonly string[],
  ): Promise<Verdict> {
    if (calls.join().length > CALL_IDS_LENGTH_MAX) return refusal(400, BAD_REQUEST, 'the ids are too long');
    const stream = await session.openCall(calls, request.forwarded);
    if (stream === null) {
      this.#options.counts.add(FrontCount.refusedCalls, 1);
      return refusal(429, LIMIT_REACHED, 'too many calls under way', calls[0]);
    }
    this.#options.counts.add(FrontCount.calls, 1);
    session.upstream.call(body, request.forwarded, stream);
    const messages = await stream.beginning(request.forwarded.authorization !== undefined);
    if (stream.refusal !== null) return whole(stream.refusal);
    // A quick answer goes out whole: each time that another thread is woken costs more than the rest of the call.
    if (messages !== null && this.#options.streams.commitsAtOnce)
      return wholeStream(session, stream, messages);
    this.#readers.first(stream, request);
    return { ...follow(session, stream, 0), isNew: true };
  }

  async #get(session: Session, request: ClientRequest): Promise<Verdict> {
    if (request.lastEventId === '') {
      const own = await session.own.open();
      session.own.listen(request.forwarded);
      return this.#read(session, own, () => this.#startOf(session, own), request);
    }
    const position = this.#options.ids.read(request.lastEventId, session.identity);
    if (position === null) return refusal(400, BAD_REQUEST, 'Last-Event-ID was not given to this session');
    if (position.seq === null) return NOTHING_MORE;
    const stream = await session.find(position);
    if (stream?.isClosed === true && !(await hasMessageAfter(this.#options.streams, stream, position.seq))) {
      return NOTHING_MORE;
    }
    if (stream?.isOwn === true) session.own.listen(request.forwarded);
    if (stream !== null) return this.#read(session, stream, () => position.seq, request);
    if (position.key === OWN_STREAM)
      return this.#read(session, await session.own.open(), () => null, request);
    this.#uses.noteRefused(session.mount);
    return lostStream(this.#options.ids, { ...position, ...session.identity, seq: position.seq }, session);
  }

  /** @param afterSeq asked when nobody else reads the stream any more. */
  async #read(
    session: Session,
    stream: MessageStream,
    afterSeq: () => number | null,
    request: ClientRequest,
  ): Promise<Verdict> {
    const { reader } = request;
    this.#sessions.use(session);
    const isNewest = await this.#readers.takeOver(stream, request);
    if (isNewest && stream.isOwn) {
      await session.keeper?.ownIsRead().catch((error: unknown) => {
        this.#readers.left(reader, 0);
        throw error;
      });
    }
    // Another one may have come meanwhile.
    return stream.reader === reader ? follow(session, stream, afterSeq()) : TAKEN_OVER;
  }

  /** Where one begins to read a session's own stream who names no event; null: nobody knows. */
  #startOf(session: Session, own: MessageStream): number | null {
    return session.own.takeHole() || session.shared?.isReadElsewhere(own) === true ? null : own.deliveredSeq;
  }

  async #delete(session: Session): Promise<Verdict> {
    await this.#sessions.endForGood(session);
    return { verdict: 'answer', status: 200, headers: {}, body: '' };
  }
}
