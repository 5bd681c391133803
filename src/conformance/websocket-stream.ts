/**
 * A WebSocket (RFC 6455) of the suite's own: enough of it for JSON messages, and strict about what comes.
 */

import { createHash, randomBytes } from 'node:crypto';
import type { IncomingMessage } from 'node:http';
import type { Duplex } from 'node:stream';
import { setTimeout as delay } from 'node:timers/promises';
import type { Answer } from './answer.js';
import { expect, expectEqual, Mismatch } from './expect.js';
import { askUpgrade, type Endpoint, readAnswer } from './http-client.js';

export interface Message {
  readonly kind: string;
  readonly [member: string]: unknown;
}

export interface Handshake {
  /** Query, without the question mark. */
  readonly query?: string;
  readonly headers?: Readonly<Record<string, string>>;
  readonly protocol?: string;
}

const GUID = '258EAFA5-E914-47DA-95CA-C5AB0DC85B11';
const WAIT_MS_MAX = 20_000;
const TEXT = 1;
const CLOSE = 8;
const PING = 9;
const PONG = 10;

export class WebSocketStream {
  readonly messages: Message[] = [];
  /** Payloads of the pings, each of which was answered. */
  readonly pings: string[] = [];
  closeCode: number | undefined;
  closeReason = '';
  readonly #refused: IncomingMessage | null;
  readonly #socket: Duplex | null;
  #rest = Buffer.alloc(0);
  #failure: Error | undefined;
  #wake: () => void = () => {};

  private constructor(refused: IncomingMessage | null, socket: Duplex | null) {
    this.#refused = refused;
    this.#socket = socket;
    socket?.on('data', (chunk: Buffer) => this.#receive(chunk));
    socket?.on('error', () => {});
    socket?.on('close', () => {
      this.closeCode ??= 1006;
      this.#wake();
    });
  }

  /** Shakes hands; resolves with the answer, whatever it is. */
  static async ask(endpoint: Endpoint, stream: string, handshake: Handshake = {}): Promise<WebSocketStream> {
    const { query = '', headers = {}, protocol = 'gapless.json.v1' } = handshake;
    const key = randomBytes(16).toString('base64');
    const path = `/v1/streams/${stream}${query === '' ? '' : `?${query}`}`;
    const { message, socket, head } = await askUpgrade(endpoint, {
      path,
      headers: {
        Connection: 'Upgrade',
        Upgrade: 'websocket',
        'Sec-WebSocket-Version': '13',
        'Sec-WebSocket-Key': key,
        'Sec-WebSocket-Protocol': protocol,
        ...headers,
      },
    });
    if (socket === null) return new WebSocketStream(message, null);
    const accept = createHash('sha1')
      .update(key + GUID)
      .digest('base64');
    expectEqual(message.headers['sec-websocket-accept'], accept, 'Sec-WebSocket-Accept');
    expectEqual(message.headers['sec-websocket-protocol'], protocol, 'Sec-WebSocket-Protocol');
    const opened = new WebSocketStream(null, socket);
    opened.#receive(head);
    return opened;
  }

  /** One that must begin. */
  static async open(endpoint: Endpoint, stream: string, handshake: Handshake = {}): Promise<WebSocketStream> {
    const socket = await WebSocketStream.ask(endpoint, stream, handshake);
    await socket.until('the first message', () => socket.messages.length > 0);
    expectEqual(socket.messages[0]?.kind, 'open', 'the kind of the first message');
    return socket;
  }

  /** The answer to a handshake that was refused. */
  async refusal(): Promise<Answer> {
    if (this.#refused === null) {
      this.close();
      throw new Mismatch('accepted, where a refusal was due');
    }
    return readAnswer(this.#refused);
  }

  ofKind(kind: string): Message[] {
    return this.messages.filter((message) => message.kind === kind);
  }

  get events(): { id: string; type: string; data: string }[] {
    return this.ofKind('events').flatMap(
      ({ events }) => events as { id: string; type: string; data: string }[],
    );
  }

  /** @throws {Mismatch} when it does not hold in time, or the end comes first. */
  async until(what: string, condition: () => boolean): Promise<void> {
    const deadline = new AbortController();
    const late = delay(WAIT_MS_MAX, 'late' as const, { signal: deadline.signal }).catch(() => 'met' as const);
    try {
      while (!condition()) {
        if (this.#failure !== undefined) throw this.#failure;
        expect(this.closeCode === undefined, `the WebSocket was closed (${this.closeCode}) without ${what}`);
        const more = new Promise<void>((resolve) => {
          this.#wake = resolve;
        });
        const waited = await Promise.race([more, late]);
        expect(waited !== 'late' || condition(), `${what} did not come in ${WAIT_MS_MAX} ms`);
      }
    } finally {
      deadline.abort();
    }
  }

  async untilClosed(): Promise<number> {
    await this.until('the end', () => this.closeCode !== undefined);
    return this.closeCode as number;
  }

  /** Says a message, and resolves with what answers it. */
  async say(message: Readonly<Record<string, unknown>>): Promise<Message> {
    const ref = randomBytes(4).toString('hex');
    this.#send(TEXT, Buffer.from(JSON.stringify({ ...message, ref })));
    const answer = (): Message | undefined => this.messages.find((told) => told.ref === ref);
    await this.until(`an answer to ${message.kind}`, () => answer() !== undefined);
    return answer() as Message;
  }

  close(): void {
    this.#socket?.destroy();
  }

  #receive(chunk: Buffer): void {
    this.#rest = Buffer.concat([this.#rest, chunk]);
    try {
      while (this.#readFrame());
    } catch (error) {
      this.#failure = error as Error;
      this.close();
    }
    this.#wake();
  }

  /** @returns whether there was a whole frame. */
  #readFrame(): boolean {
    const bytes = this.#rest;
    if (bytes.length < 2) return false;
    const [first, second] = bytes as unknown as [number, number];
    expect(
      (first & 0xf0) === 0x80,
      `a frame begins with ${first}: no whole message, or bits that nobody agreed on`,
    );
    expect((second & 0x80) === 0, 'a frame of the server is masked');
    const short = second & 0x7f;
    const start = short === 126 ? 4 : short === 127 ? 10 : 2;
    if (bytes.length < start) return false;
    const length =
      short === 126 ? bytes.readUInt16BE(2) : short === 127 ? Number(bytes.readBigUInt64BE(2)) : short;
    if (bytes.length < start + length) return false;
    this.#rest = bytes.subarray(start + length);
    this.#take(first & 0x0f, bytes.subarray(start, start + length));
    return true;
  }

  #take(opcode: number, payload: Buffer): void {
    if (opcode === TEXT) {
      this.messages.push(JSON.parse(payload.toString()) as Message);
    } else if (opcode === PING) {
      this.pings.push(payload.toString());
      this.#send(PONG, payload);
    } else if (opcode === CLOSE) {
      this.closeCode = payload.length >= 2 ? payload.readUInt16BE(0) : 1005;
      this.closeReason = payload.subarray(2).toString();
      this.#socket?.end();
    } else {
      expect(opcode === PONG, `a frame has the opcode ${opcode}`);
    }
  }

  #send(opcode: number, payload: Buffer): void {
    const mask = randomBytes(4);
    const length = Buffer.alloc(payload.length < 126 ? 2 : 4);
    length[0] = 0x80 | opcode;
    length[1] = 0x80 | (payload.length < 126 ? payload.length : 126);
    if (payload.length >= 126) length.writeUInt16BE(payload.length, 2);
    const masked = payload.map((byte, index) => byte ^ (mask[index & 3] as number));
    this.#socket?.write(Buffer.concat([length, mask, masked]));
  }
}
