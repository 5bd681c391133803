/**
 * A server that speaks over its standard input and output, one process for each session (MCP 2025-11-25, Transports,
 * "stdio"). A process that ends takes its calls with it; the next call starts another.
 */

import { type ChildProcessWithoutNullStreams, spawn } from 'node:child_process';
import { type RpcMessage, readMessages } from '../json-rpc.js';
import { answerSink } from '../stream/answer-sink.js';
import { LineDecoder } from './line-decoder.js';
import {
  type ForwardedHeaders,
  INITIALIZED,
  type MessageSink,
  NOWHERE,
  type Reply,
  type Upstream,
  UpstreamError,
  type UpstreamSession,
} from './upstream.js';

/** How long a process may take to begin at least: some are installed first. */
const START_MS = 60_000;
/** How long a process may take to end by itself once its input has. */
const END_MS = 1000;

export interface StdioUpstreamOptions {
  /** The program and its arguments. */
  readonly command: readonly string[];
  readonly silenceMs: number;
  readonly messageBytesMax: number;
  /** The session as another process left it; null: a new one. */
  readonly session: UpstreamSession | null;
  /** What the process writes for people. */
  readonly noted: (text: string) => void;
  /** A new process took the place of one that had ended. */
  readonly renewed: () => void;
}

/** A call that waits for its answers. */
interface Waiting {
  readonly sink: MessageSink;
  readonly ids: ReadonlySet<string>;
  /** What its progress is told under, as JSON. */
  readonly tokens: ReadonlySet<string>;
  readonly timer: NodeJS.Timeout;
}

export class StdioUpstream implements Upstream {
  readonly #options: StdioUpstreamOptions;
  #child: ChildProcessWithoutNullStreams | null = null;
  /** What began the session, to begin it again. */
  #beginning: Uint8Array | null = null;
  #renewing: Promise<void> | null = null;
  /** In the order in which they came. */
  readonly #waiting = new Set<Waiting>();
  #own: MessageSink | null = null;
  #ended = false;

  constructor(options: StdioUpstreamOptions) {
    this.#options = options;
    if (options.session !== null) this.#beginning = Buffer.from(options.session.beginning.body);
  }

  get session(): UpstreamSession | null {
    if (this.#beginning === null) return null;
    const beginning = { body: textOf(this.#beginning), headers: {} };
    return { beginning, id: null, revision: null };
  }

  async initialize(
    body: Uint8Array,
    _headers: ForwardedHeaders,
    before: MessageSink,
  ): Promise<RpcMessage | Reply> {
    this.#start();
    this.#own ??= before;
    const answer = await new Promise<RpcMessage>((resolve, reject) => {
      const sink = answerSink(before, {
        answered: resolve,
        failed: ({ data }) => reject(new UpstreamError(data?.reason === 'silent' ? 'silent' : 'unreachable')),
      });
      this.#call(body, sink, Math.max(START_MS, this.#options.silenceMs));
    });
    this.#beginning = body;
    return answer;
  }

  call(body: Uint8Array, _headers: ForwardedHeaders, sink: MessageSink): void {
    if (this.#child !== null) return this.#call(body, sink);
    this.#renew().then(
      () => this.#call(body, sink),
      (error: unknown) => sink.fail(asUpstreamError(error).toRpcError()),
    );
  }

  /** The process that was asked is gone. */
  resume(_reached: string | null, _headers: ForwardedHeaders, sink: MessageSink): void {
    sink.fail(new UpstreamError('broken').toRpcError());
  }

  dismiss(sink: MessageSink): void {
    for (const waiting of this.#waiting) if (waiting.sink === sink) this.#settle(waiting, null);
  }

  async send(body: Uint8Array): Promise<Reply> {
    if (this.#child === null) await this.#renew();
    this.#write(body);
    return { status: 202, headers: {}, body: '' };
  }

  listen(_headers: ForwardedHeaders, sink: MessageSink): void {
    this.#own = sink;
  }

  /** A program is of one process: no other has a part in it. */
  adopt(): void {}

  /** The process cannot be handed over: the next one starts another. */
  suspend(): Promise<void> {
    return this.end();
  }

  async end(): Promise<void> {
    this.#ended = true;
    const child = this.#child;
    if (child === null) return;
    const exited = new Promise((resolve) => child.once('exit', resolve));
    const kill = setTimeout(() => child.kill('SIGKILL'), END_MS);
    child.stdin.end();
    child.kill('SIGTERM');
    await exited;
    clearTimeout(kill);
  }

  #start(): void {
    const [program = '', ...args] = this.#options.command;
    const child = spawn(program, args, { stdio: 'pipe', env: environment() });
    this.#child = child;
    const lines = new LineDecoder(this.#options.messageBytesMax);
    child.stdout.on('data', (chunk: Buffer) => {
      const texts = lines.push(chunk);
      if (texts === null) return void this.#lost(child, new UpstreamError('message_too_large'));
      let room: Promise<void> | undefined;
      for (const text of texts) room = this.#received(text) ?? room;
      if (room === undefined) return;
      child.stdout.pause();
      void room.then(() => child.stdout.resume());
    });
    child.stderr.setEncoding('utf8').on('data', this.#options.noted);
    // An end is told by `exit`; what is written to a process that has just ended is lost with it.
    child.stdin.on('error', () => undefined);
    child.once('error', () => this.#lost(child, new UpstreamError('unreachable')));
    child.once('exit', () => this.#lost(child, new UpstreamError('broken')));
  }

  #lost(child: ChildProcessWithoutNullStreams, error: UpstreamError): void {
    if (this.#child !== child) return;
    this.#child = null;
    child.kill('SIGKILL');
    for (const waiting of [...this.#waiting]) this.#settle(waiting, error);
  }

  #call(body: Uint8Array, sink: MessageSink, silenceMs = this.#options.silenceMs): void {
    const requests = (readMessages(textOf(body)) ?? []).filter(({ kind }) => kind === 'request');
    const waiting: Waiting = {
      sink,
      ids: new Set(requests.map(({ id }) => id as string)),
      tokens: new Set(requests.flatMap(tokenOf)),
      timer: setTimeout(() => this.#settle(waiting, new UpstreamError('silent')), silenceMs),
    };
    this.#waiting.add(waiting);
    sink.accepted?.();
    try {
      this.#write(body);
    } catch (error) {
      this.#settle(waiting, asUpstreamError(error));
    }
  }

  #settle(waiting: Waiting, error: UpstreamError | null): void {
    clearTimeout(waiting.timer);
    if (this.#waiting.delete(waiting) && error !== null) waiting.sink.fail(error.toRpcError());
  }

  #received(text: string): Promise<void> | undefined {
    if (text.trim() === '') return undefined;
    const messages = readMessages(text);
    if (messages === null) {
      this.#options.noted(text);
      return undefined;
    }
    let room: Promise<void> | undefined;
    for (const message of messages) {
      const waiting = this.#callOf(message);
      waiting?.timer.refresh();
      room = (waiting?.sink ?? this.#own)?.push(message) ?? room;
      if (waiting?.sink.isClosed === true) this.#settle(waiting, null);
    }
    return room;
  }

  /**
   * Which call a message belongs to; null: none. The protocol says so of answers and of progress alone. What the server
   * asks is taken for a part of the newest call, for not every client listens otherwise, and what it tells for a part of
   * the call that is the only one.
   */
  #callOf(message: RpcMessage): Waiting | null {
    const calls = [...this.#waiting];
    if (message.kind === 'response') return calls.find(({ ids }) => ids.has(message.id ?? '')) ?? null;
    if (message.kind === 'request') return calls.at(-1) ?? null;
    const { progressToken } = (message.value ?? {}) as { progressToken?: unknown };
    if (progressToken !== undefined) {
      const token = JSON.stringify(progressToken);
      return calls.find(({ tokens }) => tokens.has(token)) ?? null;
    }
    return calls.length === 1 ? (calls[0] as Waiting) : null;
  }

  /** @throws {UpstreamError} `silent`: it does not read what it was sent before */
  #write(body: Uint8Array): void {
    const stdin = this.#child?.stdin;
    if (stdin === undefined) return;
    if (stdin.writableLength > this.#options.messageBytesMax) throw new UpstreamError('silent');
    const text = textOf(body);
    const line = /[\r\n]/.test(text) ? JSON.stringify(JSON.parse(text)) : text;
    stdin.write(`${line}\n`);
  }

  #renew(): Promise<void> {
    if (this.#ended) return Promise.reject(new UpstreamError('session_lost'));
    this.#renewing ??= this.#beginAgain().finally(() => {
      this.#renewing = null;
    });
    return this.#renewing;
  }

  async #beginAgain(): Promise<void> {
    await this.initialize(this.#beginning as Uint8Array, {}, NOWHERE);
    this.#write(INITIALIZED);
    this.#options.renewed();
  }
}

function textOf(body: Uint8Array): string {
  return Buffer.from(body.buffer, body.byteOffset, body.byteLength).toString();
}

/** The token that a request wants its progress told under. */
function tokenOf({ value }: RpcMessage): string[] {
  const { _meta } = (value ?? {}) as { _meta?: { progressToken?: unknown } };
  return _meta?.progressToken === undefined ? [] : [JSON.stringify(_meta.progressToken)];
}

function asUpstreamError(error: unknown): UpstreamError {
  if (error instanceof UpstreamError) return error;
  throw error;
}

/** What a program may know of ours: not the settings, for there are credentials among them, nor a token for the broker. */
function environment(): NodeJS.ProcessEnv {
  return Object.fromEntries(Object.entries(process.env).filter(([name]) => !name.startsWith('GAPLESS_')));
}
