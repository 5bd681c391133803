/**
 * The transport of 2024-11-05, HTTP+SSE, for clients that know no other (contract 12.10): a GET opens the one event stream
 * of a session, whose first event names the endpoint, and what is posted there is answered on the stream.
 *
 * It has no resume of its own. Who comes back with the id of an event goes on after it. The official SDK's client loses
 * the id and keeps the endpoint: it is asked who it is, by a `ping`, which it answers at the endpoint. What it may have
 * missed nobody knows, so its calls end.
 */

import { isUtf8 } from 'node:buffer';
import { classifyResume } from '../../core/resume.js';
import { ACCEPTED, PARSE_ERROR, refusal, TAKEN_OVER, whole } from '../answers.js';
import { EventIds } from '../event-id.js';
import { FrontCount, type FrontCounts } from '../front-counts.js';
import { BAD_REQUEST, LIMIT_REACHED, NO_SESSION, type RpcMessage, readMessages } from '../json-rpc.js';
import type { ClientRequest, FollowStream, Verdict, WholeAnswer } from '../messages.js';
import type { Readers } from '../readers.js';
import { hasNegotiated } from '../revision.js';
import { beginAtServer, callsIn, cancelledIn, changeNotices, passOn } from '../session/relay.js';
import { Session } from '../session/session.js';
import { ENDED } from '../session/session-options.js';
import type { Sessions } from '../session/sessions.js';
import type { McpStreams } from '../stream/mcp-streams.js';
import type { MessageStream } from '../stream/message-stream.js';
import { sessionOfKey, sseKey } from '../stream/stream-keys.js';
import { SseCalls } from './sse-calls.js';

/** How long a client may take to say who it is, until it is taken for a new one. */
const ASKED_MS = 3000;
/** The type of the event that names the endpoint (MCP 2024-11-05, Transports). */
const ENDPOINT = 'endpoint';

export interface SseTransportOptions {
  readonly sessions: Sessions;
  readonly readers: Readers;
  readonly streams: McpStreams;
  readonly ids: EventIds;
  readonly counts: FrontCounts;
  /** Of each mount. */
  readonly paths: readonly string[];
  /** Nobody guesses it. */
  readonly newSessionId: () => string;
}

/** A session of this transport. */
interface SseClient {
  readonly session: Session;
  readonly calls: SseCalls;
  /** Whether the session outlives its first connection: the server knows of it, or is about to. */
  isKept: boolean;
}

/** Somebody who came back and does not say who they are. */
interface Asked {
  readonly client: SseClient;
  readonly own: MessageStream;
  readonly timer: NodeJS.Timeout;
}

export class SseTransport {
  readonly #options: SseTransportOptions;
  readonly #clients = new WeakMap<Session, SseClient>();
  /** By the id of the ping, as JSON. Bounded by the edges' connections. */
  readonly #asked = new Map<string, Asked>();

  constructor(options: SseTransportOptions) {
    this.#options = options;
  }

  handle(request: ClientRequest): Promise<Verdict> {
    if (request.method === 'POST') return this.#post(request);
    return request.lastEventId === '' ? this.#open(request) : this.#resume(request);
  }

  async #open(request: ClientRequest): Promise<Verdict> {
    const { sessions, readers, streams, counts } = this.#options;
    const session = sessions.begin(request, 'sse');
    if (!(session instanceof Session)) return session;
    const own = await session.own.open().catch((error: unknown) => {
      sessions.end(session);
      throw error;
    });
    const client: SseClient = { session, calls: new SseCalls({ session, streams, counts }), isKept: false };
    session.ending = (stream) => client.calls.end(stream, ENDED);
    this.#clients.set(session, client);
    const isBack = hasNegotiated(request.revision);
    const ping = isBack ? this.#ask(client, own) : null;
    readers.first(own, request, () => {
      if (ping !== null) this.#takeAsked(ping);
      if (!client.isKept) sessions.end(session);
    });
    const follow = { ...this.#follow(session, own, 0), isNew: true };
    // Who comes back without an id has no use for one.
    return isBack ? { ...follow, prefix: null } : { ...follow, endpoint: this.#endpointOf(session) };
  }

  async #resume(request: ClientRequest): Promise<Verdict> {
    const { sessions, readers, ids, streams } = this.#options;
    const id = sessionOfKey(EventIds.claimed(request.lastEventId)?.key ?? '');
    if (id === null) return refusal(400, BAD_REQUEST, 'Mcp-Session-Id is missing');
    const session = sessions.find({ ...request, session: id }, 'sse');
    if (!(session instanceof Session)) return session;
    const position = ids.read(request.lastEventId, session.identity);
    if (position?.seq == null)
      return refusal(400, BAD_REQUEST, 'Last-Event-ID was not given to this session');
    const own = await session.own.open();
    const isNewest = await readers.takeOver(own, request);
    if (!isNewest) return TAKEN_OVER;
    const at = streams.positions(own.stream);
    if (at === null) return refusal(404, NO_SESSION, 'Session not found');
    const { epoch, seq } = position;
    const client = this.#clients.get(session) as SseClient;
    if (epoch === at.epoch) client.calls.received(seq);
    if (classifyResume({ epoch, seq }, at).outcome !== 'refused') return this.#follow(session, own, seq);
    this.#miss(client, own);
    return this.#follow(session, own, at.committed);
  }

  async #post(request: ClientRequest): Promise<Verdict> {
    const session = this.#options.sessions.find(request, 'sse');
    if (!(session instanceof Session)) return session;
    const client = this.#clients.get(session) as SseClient;
    const body = request.body ?? new Uint8Array();
    const messages = isUtf8(body) ? readMessages(Buffer.from(body).toString()) : null;
    if (messages === null) return refusal(400, PARSE_ERROR, 'expected one message of JSON-RPC 2.0 in UTF-8');
    const [first] = messages as [RpcMessage, ...RpcMessage[]];
    if (first.kind === 'response' && this.#asked.has(first.id ?? '')) return this.#recognize(client, first);
    if (first.method === 'initialize') return this.#initialize(client, request, first);
    if (!client.isKept) return refusal(400, BAD_REQUEST, 'initialize comes first', first.id ?? 'null');
    for (const call of cancelledIn(messages)) client.calls.noteCancelled(call);
    const calls = callsIn(messages);
    return calls.length > 0 ? this.#call(client, request, calls) : this.#pass(client, request, messages);
  }

  async #initialize(client: SseClient, request: ClientRequest, message: RpcMessage): Promise<WholeAnswer> {
    const { sessions, counts } = this.#options;
    const { session } = client;
    if (client.isKept || message.id === null) return refusal(400, BAD_REQUEST, 'initialize comes once');
    client.isKept = true;
    const answer = await beginAtServer(session, request, message.id, counts);
    if (!('status' in answer)) {
      await session.own.tell(answer.text, message.id);
      if (answer.value === undefined) sessions.end(session);
      return ACCEPTED;
    }
    // Who has to show who they are first tries again at the same endpoint.
    client.isKept = false;
    if (answer.status !== 401) sessions.end(session);
    return whole(answer);
  }

  #call({ session, calls }: SseClient, request: ClientRequest, ids: readonly string[]): WholeAnswer {
    const { counts } = this.#options;
    const sink = calls.begin(ids);
    if (sink === null) {
      counts.add(FrontCount.refusedCalls, 1);
      return refusal(429, LIMIT_REACHED, 'too many calls under way', ids[0]);
    }
    counts.add(FrontCount.calls, 1);
    session.upstream.call(request.body as Uint8Array, request.forwarded, sink);
    return ACCEPTED;
  }

  async #pass(
    { session }: SseClient,
    request: ClientRequest,
    messages: readonly RpcMessage[],
  ): Promise<WholeAnswer> {
    const answer = await passOn(session, request, messages);
    // There is no GET of its own by which a client would ask for what belongs to no call.
    if (answer === ACCEPTED) session.own.listen(request.forwarded);
    return answer;
  }

  /** Asks who comes back; as a client without a past it is told where to begin anew. @returns the id of the question. */
  #ask(client: SseClient, own: MessageStream): string {
    const ping = JSON.stringify(`gapless-${this.#options.newSessionId()}`);
    void own.tell(`{"jsonrpc":"2.0","id":${ping},"method":"ping"}`);
    const timer = setTimeout(() => this.#nameEndpoint(own, client.session), ASKED_MS);
    this.#asked.set(ping, { client, own, timer });
    return ping;
  }

  #takeAsked(ping: string): Asked | undefined {
    const asked = this.#asked.get(ping);
    this.#asked.delete(ping);
    clearTimeout(asked?.timer);
    return asked;
  }

  /** Whoever answers the ping at the endpoint of a session is its client, and goes on with the connection it came on. */
  async #recognize(client: SseClient, { id }: RpcMessage): Promise<WholeAnswer> {
    const asked = this.#takeAsked(id as string);
    if (asked === undefined || asked.client.isKept || !isSameCaller(client.session, asked.client.session)) {
      return ACCEPTED;
    }
    asked.client.isKept = true;
    const { own } = asked;
    asked.client.session.own.give(own);
    client.session.own.take(own);
    this.#options.sessions.end(asked.client.session);
    this.#nameEndpoint(own, client.session);
    this.#miss(client, own);
    return ACCEPTED;
  }

  #miss({ calls, session }: SseClient, own: MessageStream): void {
    calls.miss(own);
    for (const notice of changeNotices(session.capabilities)) void own.tell(notice);
  }

  #nameEndpoint(own: MessageStream, session: Session): void {
    void own.tell(this.#endpointOf(session), null, ENDPOINT);
  }

  #endpointOf({ mount, id }: Session): string {
    return `${this.#options.paths[mount]}?sessionId=${id}`;
  }

  #follow(session: Session, { stream, calls }: MessageStream, afterSeq: number): FollowStream {
    const key = sseKey(session.id);
    const prefix = this.#options.ids.prefix({ ...session.identity, key, epoch: stream.epoch, calls });
    const reading = { session: '', prefix, calls, primes: false, notices: null, endpoint: null };
    return { verdict: 'follow', ...reading, stream, afterSeq, isNew: false, farewells: [] };
  }
}

function isSameCaller(a: Session, b: Session): boolean {
  return a.principal === b.principal && a.mount === b.mount;
}
