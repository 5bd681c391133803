import type { IncomingMessage } from 'node:http';
import { setTimeout as delay } from 'node:timers/promises';
import type { Answer } from './answer.js';
import { expect, expectCursor, Mismatch } from './expect.js';
import { ask, type Endpoint, readAnswer } from './http-client.js';

/** What stands between two empty lines, by field. A field that is not there is undefined. */
export interface Frame {
  id?: string;
  event?: string;
  encoding?: string;
  retry?: string;
  /** All `data` lines, joined. */
  data?: string;
  comment?: string;
}

export interface Where {
  /** Sent as `Last-Event-ID`. */
  readonly lastEventId?: string | undefined;
  /** Query, without the question mark. */
  readonly query?: string;
  /** The connection is broken when so many bytes of the body have come. */
  readonly cutAfterBytes?: number;
  /** Called with each event, before the next is looked at. */
  readonly onEvent?: (frame: Frame, subscription: EventStream) => void;
}

/** `end`: a proper last chunk. `cut`: none. `broken`: by us. */
export type Ending = 'end' | 'cut' | 'broken';

const WAIT_MS_MAX = 20_000;

/** One subscription (contract 4), as it comes from the wire. */
export class EventStream {
  readonly frames: Frame[] = [];
  readonly linesWithoutColon: string[] = [];
  ending: Ending | undefined;
  readonly #message: IncomingMessage;
  readonly #where: Where;
  readonly #decoder = new TextDecoder('utf-8', { fatal: true });
  #failure: Error | undefined;
  #rest = '';
  #frame: Frame = {};
  #isFrameEmpty = true;
  #bytes = 0;
  #wake: () => void = () => {};

  private constructor(message: IncomingMessage, where: Where) {
    this.#message = message;
    this.#where = where;
    if (message.statusCode !== 200) return;
    message.on('data', (chunk: Buffer) => this.#receive(chunk));
    message.on('error', () => {});
    // `complete` says whether the body had its proper end, which is what the contract distinguishes.
    message.on('close', () => this.#end(message.complete ? 'end' : 'cut'));
  }

  /** Subscribes to what is `below` the streams; resolves with the head of the answer, whatever its status. */
  static async ask(endpoint: Endpoint, below: string, where: Where = {}): Promise<EventStream> {
    const { lastEventId, query = '' } = where;
    const headers: Record<string, string> = { Accept: 'text/event-stream' };
    if (lastEventId !== undefined) headers['Last-Event-ID'] = lastEventId;
    const path = `/v1/streams${below}${query === '' ? '' : `?${query}`}`;
    return new EventStream(await ask(endpoint, { path, headers }), where);
  }

  get status(): number {
    return this.#message.statusCode ?? 0;
  }

  header(name: string): string | undefined {
    const value = this.#message.headers[name.toLowerCase()];
    return Array.isArray(value) ? value.join(', ') : value;
  }

  /** The frames that a client takes for events. */
  get events(): Frame[] {
    return this.frames.filter(({ data }) => data !== undefined);
  }

  /** What a client that breaks now would come back with; empty if it was given no id. */
  get lastId(): string {
    return this.frames.findLast(({ id }) => id !== undefined)?.id ?? '';
  }

  get seqs(): number[] {
    return this.events.flatMap(({ id }) =>
      id === undefined ? [] : expectCursor(id, 'the id of an event').seq,
    );
  }

  /** @throws {Mismatch} when it does not hold in time, or the stream ends first. */
  async until(what: string, condition: () => boolean, waitMs = WAIT_MS_MAX): Promise<void> {
    const deadline = new AbortController();
    const late = delay(waitMs, 'late' as const, { signal: deadline.signal }).catch(() => 'met' as const);
    try {
      while (!condition()) {
        if (this.#failure !== undefined) throw this.#failure;
        const came = `after ${this.events.length} events, at ${this.lastId || 'no id'}`;
        expect(this.ending === undefined, `the subscription ended (${this.ending}) without ${what}, ${came}`);
        const more = new Promise<void>((resolve) => {
          this.#wake = resolve;
        });
        const waited = await Promise.race([more, late]);
        expect(waited !== 'late' || condition(), `${what} did not come in ${waitMs} ms, ${came}`);
      }
    } finally {
      deadline.abort();
    }
    if (this.#failure !== undefined) throw this.#failure;
  }

  untilEvents(count: number): Promise<void> {
    return this.until(`${count} events`, () => this.events.length >= count);
  }

  /** From the priming frame on the subscription stands at its position (contract 4.2). */
  untilPrimed(): Promise<void> {
    return this.until('the priming frame', () => this.lastId !== '');
  }

  async untilEnded(): Promise<Ending> {
    await this.until('the end', () => this.ending !== undefined);
    return this.ending as Ending;
  }

  /** The whole answer, where it is no stream. */
  async refusal(): Promise<Answer> {
    expect(this.status !== 200, 'accepted, where a refusal was due');
    return readAnswer(this.#message);
  }

  stall(): void {
    this.#message.pause();
  }

  unstall(): void {
    this.#message.resume();
  }

  /** Breaks the connection; what comes after is not seen. */
  close(): void {
    this.#end('broken');
    this.#message.destroy();
  }

  #receive(chunk: Buffer): void {
    if (this.ending !== undefined) return;
    const left = (this.#where.cutAfterBytes ?? Number.POSITIVE_INFINITY) - this.#bytes;
    const seen = chunk.subarray(0, Math.min(left, chunk.length));
    this.#bytes += seen.length;
    try {
      this.#read(seen);
    } catch (error) {
      this.#failure = error instanceof Mismatch ? error : new Mismatch('the event stream is not UTF-8');
      this.close();
    }
    if (chunk.length >= left) this.close();
    this.#wake();
  }

  #read(bytes: Uint8Array): void {
    const lines = (this.#rest + this.#decoder.decode(bytes, { stream: true })).split('\n');
    this.#rest = lines.pop() ?? '';
    for (const line of lines) {
      if (this.ending === undefined) this.#readLine(line.endsWith('\r') ? line.slice(0, -1) : line);
    }
  }

  #readLine(line: string): void {
    if (line === '') {
      this.#dispatch();
      return;
    }
    const colon = line.indexOf(':');
    if (colon < 0) this.linesWithoutColon.push(line);
    const name = colon < 0 ? line : line.slice(0, colon);
    const value = line.slice(name.length + 1).replace(/^ /, '');
    this.#isFrameEmpty = false;
    if (name === 'data')
      this.#frame.data = this.#frame.data === undefined ? value : `${this.#frame.data}\n${value}`;
    else if (name === 'id' || name === 'event' || name === 'encoding' || name === 'retry')
      this.#frame[name] = value;
    else if (name === '') this.#frame.comment = value;
  }

  #dispatch(): void {
    const frame = this.#frame;
    if (this.#isFrameEmpty) return;
    this.#frame = {};
    this.#isFrameEmpty = true;
    this.frames.push(frame);
    if (frame.data !== undefined) this.#where.onEvent?.(frame, this);
  }

  #end(ending: Ending): void {
    this.ending ??= ending;
    this.#wake();
  }
}
