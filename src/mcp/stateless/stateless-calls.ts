/**
 * Requests that stand for themselves (contract 12.8): each has one reader, and ends with it, unless it is durable.
 */

import { passFailure, refusal, TAKEN_OVER, whole } from '../answers.js';
import { farewellOf } from '../farewell.js';
import { BAD_REQUEST, LIMIT_REACHED, type RpcMessage, readMessages, UPSTREAM_FAILED } from '../json-rpc.js';
import type { ClientRequest, Verdict, WholeAnswer } from '../messages.js';
import type { Readers } from '../readers.js';
import type { Backlog } from '../stream/backlog.js';
import type { McpStreams } from '../stream/mcp-streams.js';
import { MessageStream } from '../stream/message-stream.js';
import { follow, wholeStream } from '../stream/stream-verdicts.js';
import { DURABLE_READER, type DurableCall, type DurableCalls } from './durable-calls.js';
import type { StatelessCall } from './stateless-call.js';

/** As MCP 2026-07-28 has it. */
const UNSUPPORTED_REVISION = -32022;
/** There are no sessions, and nothing to come back with. */
const READER = { id: '', primes: false, capabilities: [] };

export interface StatelessCallsOptions {
  /** A call without a session; null: the server of this mount takes none. */
  readonly connectStateless: (mount: number) => StatelessCall | null;
  readonly streams: McpStreams;
  readonly readers: Readers;
  readonly backlog: Backlog;
  /** Null: calls end with their connections, as the revision has it. */
  readonly durable: DurableCalls | null;
}

interface Asked {
  readonly call: StatelessCall;
  /** Null: it ends with its connection. */
  readonly durable: DurableCall | null;
}

export class StatelessCalls {
  readonly #options: StatelessCallsOptions;
  /** Those that end with their connections, by these; bounded by the edges'. */
  readonly #underWay = new Map<number, StatelessCall>();

  constructor(options: StatelessCallsOptions) {
    this.#options = options;
  }

  /** The client has hung up, or has all. */
  left(reader: number): void {
    this.#underWay.get(reader)?.abort();
    this.#underWay.delete(reader);
    this.#options.durable?.left(reader);
  }

  async pass(request: ClientRequest): Promise<Verdict> {
    const { durable: calls } = this.#options;
    const { method, mount, body, revision, lastEventId } = request;
    if (method === 'GET' && lastEventId !== '' && calls !== null) return calls.resume(request);
    if (method !== 'POST' || body === null) {
      const headers = { 'Content-Type': 'application/json', Allow: 'POST' };
      return { ...refusal(405, BAD_REQUEST, 'this revision has POST alone'), headers };
    }
    const repeated = (await calls?.repeated(request, body)) ?? null;
    if (repeated !== null) return repeated;
    const message = readMessages(Buffer.from(body).toString())?.[0] ?? null;
    const call = this.#options.connectStateless(mount);
    if (call === null) {
      return refusal(400, UNSUPPORTED_REVISION, `unsupported revision: ${revision}`, message?.id ?? 'null');
    }
    if (calls === null) return this.#pass({ call, durable: null }, request, message);
    const durable = calls.add(call, request, body);
    return durable === null
      ? refusal(503, LIMIT_REACHED, 'too many calls', message?.id ?? 'null')
      : this.#pass({ call, durable }, request, message);
  }

  async #pass(asked: Asked, request: ClientRequest, message: RpcMessage | null): Promise<Verdict> {
    const { streams, readers } = this.#options;
    const { call, durable } = asked;
    const { reader } = request;
    const outcome = await this.#answer(asked, request, message);
    if ('verdict' in outcome) return outcome;
    readers.first(outcome, request, () => {
      if (durable === null) streams.remove(outcome.stream);
    });
    void call.read(outcome);
    const as = durable === null ? READER : DURABLE_READER;
    const messages = await outcome.beginning();
    if (messages !== null && streams.commitsAtOnce) {
      this.#underWay.delete(reader);
      readers.left(reader, 0);
      return wholeStream(as, outcome, messages);
    }
    if (outcome.reader !== reader) return TAKEN_OVER;
    return { ...follow(as, outcome, 0), isNew: true };
  }

  /** Sends it, and notes what becomes of it. @returns as `#send` */
  async #answer(
    asked: Asked,
    request: ClientRequest,
    message: RpcMessage | null,
  ): Promise<MessageStream | WholeAnswer> {
    const { call, durable } = asked;
    const { reader } = request;
    const answered = this.#send(asked, request, message);
    if (durable === null) this.#underWay.set(reader, call);
    else durable.outcome = answered;
    try {
      const outcome = await answered;
      if (durable !== null) this.#options.durable?.begun(durable, reader, outcome);
      else if ('verdict' in outcome) this.left(reader);
      return outcome;
    } catch (error) {
      // There is no room for another stream.
      if (durable !== null) this.#options.durable?.forget(durable);
      this.left(reader);
      throw error;
    }
  }

  /** @returns the stream of the answer, which is to be read into it, or the answer whole. */
  async #send(
    { call, durable }: Asked,
    { body, forwarded, revision }: ClientRequest,
    message: RpcMessage | null,
  ): Promise<MessageStream | WholeAnswer> {
    const id = message?.id ?? null;
    const reply = await call
      .send(body as Uint8Array, { ...forwarded, 'MCP-Protocol-Version': revision })
      .catch((error: unknown) => passFailure(error, id ?? 'null'));
    if (reply !== null) return whole(reply);
    if (message === null || id === null || call.isAborted) {
      call.abort();
      return refusal(502, UPSTREAM_FAILED, 'an event stream that answers nothing');
    }
    const { streams, backlog, durable: calls } = this.#options;
    const stream = await streams.create();
    const named = durable === null ? null : calls?.identify(durable, stream, [id]);
    return new MessageStream({
      streams,
      stream,
      backlog,
      key: named?.key ?? '',
      prefix: named?.prefix ?? null,
      calls: [id],
      farewells: [farewellOf(message.method, id)],
      answered: () => undefined,
      failed: () => undefined,
      lost: () => undefined,
    });
  }
}
