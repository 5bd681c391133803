import assert from 'node:assert/strict';
import { pack, unpack } from 'msgpackr';
import { WebSocket } from 'ws';
import { seqOf } from './cursor.js';
import { withDeadline } from './deadline.js';
import type { PageEvent } from './gapless-client.js';

/** What the broker says over a WebSocket (contract 5). */
export interface LiveMessage {
  kind: string;
  [member: string]: unknown;
}

export interface WebSocketOptions {
  /** Subprotocols that are offered. Default: none, which is JSON. */
  protocols?: readonly string[];
  cursor?: string | undefined;
  /** More of the query, such as `types=a,b`. */
  query?: string;
  headers?: Readonly<Record<string, string>>;
  /** Whether pings are answered, as every WebSocket does by itself. Default true. */
  answersPings?: boolean;
  /** Said as soon as the handshake is done, before the subscription has begun. */
  atOnce?: readonly Readonly<Record<string, unknown>>[];
}

/** One WebSocket of a client that is not ours: records all that comes, stalls and breaks on demand. */
export class LiveSocket {
  readonly messages: LiveMessage[] = [];
  readonly events: PageEvent[] = [];
  /** Payloads of the broker's pings. */
  readonly pings: string[] = [];
  protocol = '';
  /** The close code once it is over; 1006 without a proper end. */
  closeCode: number | undefined;
  closeReason = '';
  /** The answer to a handshake that was refused. */
  refusal: { status: number; body: string } | undefined;

  readonly #socket: WebSocket;
  readonly #watchers = new Set<() => void>();
  #publishes = 0;

  private constructor(url: string, options: WebSocketOptions) {
    this.#socket = new WebSocket(url, [...(options.protocols ?? [])], {
      headers: { ...options.headers },
      autoPong: options.answersPings ?? true,
      perMessageDeflate: false,
    });
    this.#socket.on('open', () => {
      this.protocol = this.#socket.protocol;
      for (const message of options.atOnce ?? []) this.sayMap(message);
    });
    this.#socket.on('message', (data: Buffer, isBinary) => this.#received(data, isBinary));
    this.#socket.on('ping', (payload) => {
      this.pings.push(payload.toString());
      this.#notify();
    });
    this.#socket.on('unexpected-response', (request, response) => {
      const body: Buffer[] = [];
      response.on('data', (chunk: Buffer) => body.push(chunk));
      response.on('end', () => {
        this.refusal = { status: response.statusCode ?? 0, body: Buffer.concat(body).toString() };
        request.destroy();
        this.#notify();
      });
    });
    this.#socket.on('error', () => {});
    this.#socket.on('close', (code, reason) => {
      this.closeCode = code;
      this.closeReason = reason.toString();
      this.#notify();
    });
  }

  /** Connects; nothing is waited for. */
  static connect(port: number, stream: string, options: WebSocketOptions = {}): LiveSocket {
    const query = [options.cursor === undefined ? '' : `cursor=${options.cursor}`, options.query ?? ''];
    const text = query.filter((part) => part !== '').join('&');
    const path = `/v1/streams/${stream}${text === '' ? '' : `?${text}`}`;
    return new LiveSocket(`ws://127.0.0.1:${port}${path}`, options);
  }

  /** Connects, and resolves when the subscription has begun. */
  static async open(port: number, stream: string, options: WebSocketOptions = {}): Promise<LiveSocket> {
    const socket = LiveSocket.connect(port, stream, options);
    await socket.untilKind('open');
    return socket;
  }

  get seqs(): number[] {
    return this.events.map(({ id }) => seqOf(id));
  }

  get data(): string[] {
    return this.events.map(({ data }) => data);
  }

  get isClosed(): boolean {
    return this.closeCode !== undefined;
  }

  ofKind(kind: string): LiveMessage[] {
    return this.messages.filter((message) => message.kind === kind);
  }

  async untilKind(kind: string, count = 1): Promise<LiveMessage> {
    await this.until(`${count} of "${kind}"`, () => this.ofKind(kind).length >= count);
    return this.ofKind(kind)[count - 1] as LiveMessage;
  }

  untilSeq(seq: number): Promise<void> {
    return this.until(`seq ${seq}`, () => (this.seqs.at(-1) ?? 0) >= seq);
  }

  untilEvents(count: number): Promise<void> {
    return this.until(`${count} events`, () => this.events.length >= count);
  }

  /** Resolves with the close code. */
  async untilClosed(): Promise<number> {
    await this.until('the end', () => this.isClosed);
    return this.closeCode as number;
  }

  /** Resolves with the answer to a handshake that was refused. */
  async untilRefused(): Promise<{ status: number; body: string }> {
    await this.until('a refusal', () => this.refusal !== undefined);
    return this.refusal as { status: number; body: string };
  }

  /** Resolves once the condition holds; it is tried after everything that comes. Fails if the end comes first. */
  async until(what: string, condition: () => boolean): Promise<void> {
    let watcher = (): void => {};
    const met = new Promise<void>((resolve, reject) => {
      watcher = () => {
        if (condition()) resolve();
        else if (this.isClosed) {
          const seen = JSON.stringify(this.messages.slice(-3));
          reject(new Error(`closed with ${this.closeCode} "${this.closeReason}" without ${what}: ${seen}`));
        }
      };
      this.#watchers.add(watcher);
      watcher();
    });
    await withDeadline(what, met).finally(() => this.#watchers.delete(watcher));
  }

  /** Publishes by a message, and resolves with its answer. */
  async publish(message: Readonly<Record<string, unknown>>): Promise<LiveMessage> {
    const ref = `publish ${++this.#publishes}`;
    this.sayMap({ kind: 'publish', ref, ...message });
    return this.untilAnswered(ref);
  }

  async untilAnswered(ref: unknown): Promise<LiveMessage> {
    const isAnswer = (message: LiveMessage): boolean => message.ref === ref;
    await this.until(`an answer to ${ref}`, () => this.messages.some(isAnswer));
    return this.messages.find(isAnswer) as LiveMessage;
  }

  /** Says a map in the notation of the subprotocol. */
  sayMap(message: Readonly<Record<string, unknown>>): void {
    this.send(this.protocol === 'gapless.msgpack.v1' ? pack(message) : JSON.stringify(message));
  }

  send(message: string | Uint8Array): void {
    this.#socket.send(message);
  }

  ping(payload: string): void {
    this.#socket.ping(payload);
  }

  pong(payload: string): void {
    this.#socket.pong(payload);
  }

  /** Stops reading: the kernel's buffers fill, then the broker's writes stop. */
  stall(): void {
    this.#socket.pause();
  }

  unstall(): void {
    this.#socket.resume();
  }

  /** Ends it properly from this side. */
  end(): void {
    this.#socket.close(1000);
  }

  /** Breaks it at once. */
  cut(): void {
    this.#socket.terminate();
  }

  #received(data: Buffer, isBinary: boolean): void {
    const message = (isBinary ? unpack(data) : JSON.parse(data.toString())) as LiveMessage;
    this.messages.push(message);
    if (message.kind === 'events') this.events.push(...(message.events as PageEvent[]));
    assert.equal(isBinary, this.protocol === 'gapless.msgpack.v1');
    this.#notify();
  }

  #notify(): void {
    for (const watcher of [...this.#watchers]) watcher();
  }
}
