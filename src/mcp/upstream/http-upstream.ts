/**
 * A server that speaks Streamable HTTP, as one session uses it (MCP 2025-11-25, Transports). The front is its client, and
 * an honest one: it takes up event streams again that the server lets go of, and begins a new session with a server that
 * has forgotten the old one.
 */

import { setTimeout as sleep } from 'node:timers/promises';
import type { RpcMessage } from '../json-rpc.js';
import { answerSink } from '../stream/answer-sink.js';
import { hasForgotten, isEventStream, isSuccess, toRefusal, toReply } from './http-answer.js';
import type { HttpTarget, UnderWay } from './http-request.js';
import { HttpResponse } from './http-response.js';
import { type Beginning, HttpSession } from './http-session.js';
import { failInto, RESUME_MS, type Resumable, readAnswer, tellRefusal } from './read-answer.js';
import {
  type ForwardedHeaders,
  INITIALIZED,
  type MessageSink,
  NOWHERE,
  type Reply,
  type Upstream,
  UpstreamError,
  type UpstreamReason,
  type UpstreamSession,
} from './upstream.js';

/** Failed attempts in a row, to take up a stream, after which its call is given up. */
const RESUMES_MAX = 5;
/** Failures that the next attempt may not meet. */
const MAY_PASS: ReadonlySet<UpstreamReason> = new Set(['unreachable', 'broken']);
/** The longest pause that a server may ask for, and between attempts to listen. */
const PAUSE_MS_MAX = 30_000;

const ACCEPT = 'application/json, text/event-stream';

export interface HttpUpstreamOptions {
  readonly target: HttpTarget;
  readonly messageBytesMax: number;
  /** The session as another process left it; null: a new one. */
  readonly session: UpstreamSession | null;
  /** The server took up a session anew that it had forgotten. */
  readonly renewed: () => void;
}

/** A request, and what its answer goes to where it is one of a call. */
interface Asked {
  readonly body: Uint8Array | null;
  readonly sink?: MessageSink;
}

export class HttpUpstream implements Upstream {
  readonly #options: HttpUpstreamOptions;
  readonly #underWay = new Set<UnderWay>();
  /** By the sink of each call; bounded by the calls of a session. */
  readonly #calls = new Map<MessageSink, Set<UnderWay>>();
  readonly #ending = new AbortController();
  readonly #session = new HttpSession();
  #renewing: Promise<void> | null = null;

  constructor(options: HttpUpstreamOptions) {
    this.#options = options;
    if (options.session !== null) this.#session.take(options.session);
  }

  get session(): UpstreamSession | null {
    return this.#session.state;
  }

  adopt(session: UpstreamSession): void {
    if (this.#renewing === null && session.id !== this.#session.id) this.#session.take(session);
  }

  async initialize(
    body: Uint8Array,
    headers: ForwardedHeaders,
    before: MessageSink,
  ): Promise<RpcMessage | Reply> {
    const response = await this.#request('POST', headers, { body });
    if (!isSuccess(response)) return this.#toReply(response);
    const answer = await this.#firstAnswer(response, before);
    const { protocolVersion } = (answer.value ?? {}) as { protocolVersion?: unknown };
    const revision = typeof protocolVersion === 'string' ? protocolVersion : null;
    this.#session.begin({ body, headers }, response.header('mcp-session-id'), revision);
    return answer;
  }

  call(body: Uint8Array, headers: ForwardedHeaders, sink: MessageSink): void {
    this.#begin(sink, this.#call(body, headers, sink));
  }

  resume(reached: string | null, headers: ForwardedHeaders, sink: MessageSink): void {
    const takeUp = async (): Promise<void> => {
      if (reached === null) throw new UpstreamError('broken');
      const from = await this.#resume({ lastId: reached, retryMs: RESUME_MS }, headers, sink);
      await this.#takeUp(from, headers, sink);
    };
    this.#begin(sink, takeUp());
  }

  dismiss(sink: MessageSink): void {
    for (const request of this.#calls.get(sink) ?? []) request.destroy();
  }

  async send(body: Uint8Array, headers: ForwardedHeaders): Promise<Reply> {
    const answer = await this.#requestInSession('POST', headers, { body });
    return answer instanceof HttpResponse ? this.#toReply(answer) : answer;
  }

  listen(headers: ForwardedHeaders, sink: MessageSink, reached: string | null): void {
    const last = { lastId: reached ?? '', retryMs: RESUME_MS };
    void this.#listen(last, headers, sink).catch((error: unknown) => {
      if (!(error instanceof UpstreamError)) throw error;
    });
  }

  async suspend(): Promise<void> {
    this.#ending.abort();
    for (const underWay of [this.#underWay, ...this.#calls.values()]) {
      for (const request of underWay) request.destroy();
    }
  }

  async end(): Promise<void> {
    await this.suspend();
    const session = this.#session;
    if (session.id === null) return;
    const headers = session.withSession(session.withNewest(session.beginning?.headers ?? {}));
    // Nobody is there to be told what comes of it.
    const response = await this.#options.target.request('DELETE', headers, null).catch(() => null);
    response?.destroy();
  }

  #begin(sink: MessageSink, call: Promise<void>): void {
    failInto(
      sink,
      call.finally(() => this.#calls.delete(sink)),
    );
  }

  async #call(body: Uint8Array, headers: ForwardedHeaders, sink: MessageSink): Promise<void> {
    const answer = await this.#requestInSession('POST', headers, { body, sink });
    if (!(answer instanceof HttpResponse)) return tellRefusal(answer, sink);
    sink.accepted?.();
    await this.#takeUp(await this.#readAnswer(answer, sink), headers, sink);
  }

  /** Takes an event stream up until all is answered. @throws {UpstreamError} */
  async #takeUp(from: Resumable | null, headers: ForwardedHeaders, sink: MessageSink): Promise<void> {
    let resumable = from;
    for (let failures = 0; !sink.isClosed; ) {
      if (resumable === null || failures === RESUMES_MAX) throw new UpstreamError('broken');
      const before: Resumable = resumable;
      await this.#pause(before.retryMs);
      resumable = await this.#resume(before, headers, sink);
      failures = resumable.lastId === before.lastId ? failures + 1 : 0;
    }
  }

  /** Takes an event stream up where it broke. @returns where it is now. */
  async #resume(from: Resumable, headers: ForwardedHeaders, sink: MessageSink): Promise<Resumable> {
    const resuming = this.#session.withSession({
      ...this.#session.withNewest(headers),
      'Last-Event-ID': from.lastId,
    });
    try {
      const response = await this.#request('GET', resuming, { body: null, sink });
      if (isSuccess(response) && isEventStream(response)) {
        return (await this.#readAnswer(response, sink)) ?? from;
      }
      response.destroy();
      throw new UpstreamError('refused', response.status);
    } catch (error) {
      // Perhaps it is starting again.
      if (error instanceof UpstreamError && MAY_PASS.has(error.reason)) return from;
      throw error;
    }
  }

  /** The answer to a request that has one, as soon as it is there. */
  #firstAnswer(response: HttpResponse, before: MessageSink): Promise<RpcMessage> {
    return new Promise((resolve, reject) => {
      // A body that ends without the answer is told by `#readAnswer`.
      const sink = answerSink(before, { answered: resolve, failed: () => undefined });
      this.#readAnswer(response, sink).then(() => reject(new UpstreamError('rubbish')), reject);
    });
  }

  async #listen(from: Resumable, headers: ForwardedHeaders, sink: MessageSink): Promise<void> {
    let last = from;
    for (let failures = 0; !sink.isClosed; ) {
      try {
        const answer = await this.#askToListen(last, headers);
        if (answer === 'not_offered') return;
        failures = answer === 'refused' ? failures + 1 : 0;
        // What it does not know any more cannot be resumed, but listened to from now on.
        if (answer === 'refused') last = { ...last, lastId: '' };
        else last = (await this.#readAnswer(answer, sink)) ?? last;
      } catch (error) {
        if (!(error instanceof UpstreamError) || this.#ending.signal.aborted) throw error;
        failures++;
      }
      await this.#pause(Math.max(last.retryMs, RESUME_MS * (2 ** Math.min(failures, 5) - 1)));
    }
  }

  /** @returns the event stream of what belongs to no call, or why there is none. @throws {UpstreamError} */
  async #askToListen(
    { lastId }: Resumable,
    headers: ForwardedHeaders,
  ): Promise<HttpResponse | 'not_offered' | 'refused'> {
    const resuming: ForwardedHeaders = lastId === '' ? {} : { 'Last-Event-ID': lastId };
    const asking = { ...this.#session.withNewest(headers), ...resuming };
    const answer = await this.#requestInSession('GET', asking, { body: null });
    if (!(answer instanceof HttpResponse)) return answer.status === 405 ? 'not_offered' : 'refused';
    if (isEventStream(answer)) return answer;
    answer.destroy();
    return 'refused';
  }

  #readAnswer(response: HttpResponse, sink: MessageSink): Promise<Resumable | null> {
    return readAnswer(response, sink, this.#options.messageBytesMax);
  }

  #toReply(response: HttpResponse): Promise<Reply> {
    return toReply(response, this.#options.messageBytesMax);
  }

  /**
   * A request; if the server has forgotten the session, once more in a new one: what it refused so it has not carried out.
   * @returns a refusal whole.
   */
  async #requestInSession(
    method: 'POST' | 'GET',
    headers: ForwardedHeaders,
    asked: Asked,
  ): Promise<HttpResponse | Reply> {
    // Whoever comes while it begins anew has a session to wait for.
    await this.#renewing?.catch(() => undefined);
    const session = this.#session;
    const sessionId = session.id;
    const answer = await this.#refusalOr(this.#request(method, session.withSession(headers), asked));
    if (method === 'POST' && answer instanceof HttpResponse) session.noteTaken(headers);
    if (sessionId === null || answer instanceof HttpResponse || !hasForgotten(answer)) return answer;
    await this.#renew(sessionId);
    const { 'Last-Event-ID': _, ...fresh } = headers;
    return this.#refusalOr(this.#request(method, session.withSession(fresh), asked));
  }

  async #refusalOr(requested: Promise<HttpResponse>): Promise<HttpResponse | Reply> {
    const response = await requested;
    return isSuccess(response) ? response : toRefusal(response, this.#options.messageBytesMax);
  }

  async #request(
    method: 'POST' | 'GET',
    headers: ForwardedHeaders,
    { body, sink }: Asked,
  ): Promise<HttpResponse> {
    const underWay = sink === undefined ? this.#underWay : this.#underWayFor(sink);
    if (this.#ending.signal.aborted) throw new UpstreamError('broken');
    const media: Record<string, string> =
      body === null
        ? { Accept: 'text/event-stream' }
        : { Accept: ACCEPT, 'Content-Type': 'application/json' };
    return this.#options.target.request(method, { ...headers, ...media }, body, underWay);
  }

  #underWayFor(sink: MessageSink): Set<UnderWay> {
    const underWay = this.#calls.get(sink) ?? new Set();
    this.#calls.set(sink, underWay);
    return underWay;
  }

  /** Begins the session anew, once for all who found that it was forgotten. */
  #renew(forgotten: string): Promise<void> {
    if (this.#renewing === null && this.#session.id !== forgotten) return Promise.resolve();
    this.#renewing ??= this.#beginAgain().finally(() => {
      this.#renewing = null;
    });
    return this.#renewing;
  }

  async #beginAgain(): Promise<void> {
    const session = this.#session;
    const { body, headers: before } = session.beginning as Beginning;
    const headers = session.withNewest(before);
    const answer = await this.initialize(body, headers, NOWHERE);
    if ('status' in answer) throw new UpstreamError('session_lost', answer.status);
    await this.#toReply(await this.#request('POST', session.withSession(headers), { body: INITIALIZED }));
    this.#options.renewed();
  }

  #pause(ms: number): Promise<void> {
    return sleep(Math.min(ms, PAUSE_MS_MAX), undefined, { signal: this.#ending.signal }).catch(() => {
      throw new UpstreamError('broken');
    });
  }
}
