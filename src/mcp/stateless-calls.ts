/**
 * Requests that stand for themselves (contract 12.8): each has one reader, and ends with it.
 */

import { passFailure, refusal, whole } from './answers.js';
import type { Backlog } from './backlog.js';
import { BAD_REQUEST, readMessages, UPSTREAM_FAILED } from './json-rpc.js';
import type { McpStreams } from './mcp-streams.js';
import { MessageStream } from './message-stream.js';
import type { ClientRequest, FollowStream, Verdict } from './messages.js';
import type { Readers } from './readers.js';
import type { StatelessCall } from './stateless-call.js';

/** As MCP 2026-07-28 has it. */
const UNSUPPORTED_REVISION = -32022;

export interface StatelessCallsOptions {
  /** A call without a session; null: the server of this mount takes none. */
  readonly connectStateless: (mount: number) => StatelessCall | null;
  readonly streams: McpStreams;
  readonly readers: Readers;
  readonly backlog: Backlog;
}

export class StatelessCalls {
  readonly #options: StatelessCallsOptions;
  /** By who waits for them. Bounded by the edges' connections. */
  readonly #underWay = new Map<number, StatelessCall>();

  constructor(options: StatelessCallsOptions) {
    this.#options = options;
  }

  /** The client has hung up, or has all. */
  left(reader: number): void {
    this.#underWay.get(reader)?.abort();
    this.#underWay.delete(reader);
  }

  async pass({ method, mount, body, forwarded, revision, reader }: ClientRequest): Promise<Verdict> {
    if (method !== 'POST' || body === null) {
      const headers = { 'Content-Type': 'application/json', Allow: 'POST' };
      return { ...refusal(405, BAD_REQUEST, 'this revision has POST alone'), headers };
    }
    const call = this.#options.connectStateless(mount);
    const id = readMessages(Buffer.from(body).toString())?.[0]?.id ?? null;
    const answered = id ?? 'null';
    if (call === null)
      return refusal(400, UNSUPPORTED_REVISION, `unsupported revision: ${revision}`, answered);
    this.#underWay.set(reader, call);
    const reply = await call
      .send(body, { ...forwarded, 'MCP-Protocol-Version': revision })
      .catch((error: unknown) => passFailure(error, answered));
    if (reply === null && id !== null && !call.isAborted) return this.#follow(call, id, { reader, mount });
    this.left(reader);
    return reply === null
      ? refusal(502, UPSTREAM_FAILED, 'an event stream that answers nothing')
      : whole(reply);
  }

  async #follow(
    call: StatelessCall,
    id: string,
    reader: Pick<ClientRequest, 'reader' | 'mount'>,
  ): Promise<FollowStream> {
    const { streams, backlog, readers } = this.#options;
    const ref = await streams.create();
    const calls = [id];
    const stream = new MessageStream({
      streams,
      stream: ref,
      backlog,
      key: '',
      prefix: '',
      calls,
      answered: () => undefined,
      failed: () => undefined,
      lost: () => undefined,
    });
    readers.first(stream, reader, () => streams.remove(ref));
    void call.read(stream);
    const following = {
      prefix: null,
      calls,
      primes: false,
      afterSeq: 0,
      isNew: true,
      notices: null,
      endpoint: null,
    };
    return { verdict: 'follow', session: '', stream: ref, ...following };
  }
}
