import assert from 'node:assert/strict';
import { connect, type Socket } from 'node:net';
import { seqOf } from './cursor.js';
import { withDeadline } from './deadline.js';
import { encodeRequest, type HttpRequest, HttpResponse } from './http.js';
import { HttpResponseParser, type ResponseHead } from './http-response-parser.js';
import { type SseEvent, SseParser } from './sse-parser.js';

export interface SubscribeOptions {
  /** Sent as `Last-Event-ID`; an empty string sends the header empty. */
  lastEventId?: string | undefined;
  /** Several streams in place of the one that is named (contract 4.10). */
  streams?: readonly string[] | undefined;
  /** Sent as `?cursor=`. */
  cursor?: string | undefined;
  /** More of the query, such as `types=a,b`. */
  query?: string | undefined;
  headers?: Readonly<Record<string, string>> | undefined;
  /** Sent in place of the request for the stream. */
  request?: HttpRequest | undefined;
  /** Break the connection when exactly so many bytes have come; what came after them was never seen. */
  cutAfterBytes?: number | undefined;
  /** Called after each event is recorded. A cut there takes effect before the next event, a stall before the next chunk. */
  onEvent?: ((event: SseEvent, subscription: SseSubscription) => void) | undefined;
  /** Keep the body as it came; for tests about bytes. */
  keepText?: boolean | undefined;
  /** Record events; false only counts them, for readers of very much. Default true. */
  keepEvents?: boolean | undefined;
}

/** `end`: a proper last chunk. `cut`: the broker closed without one. `broken`: our side broke it. */
export type Ending = 'end' | 'cut' | 'broken';

/** One subscription over a raw socket: records all that comes, stalls and breaks on demand. */
export class SseSubscription {
  readonly events: SseEvent[] = [];
  readonly retries: number[] = [];
  readonly idsWithoutEvent: string[] = [];
  readonly linesWithoutColon: string[] = [];
  comments = 0;
  eventCount = 0;
  bytesReceived = 0;
  text = '';
  head: ResponseHead | undefined;
  ending: Ending | undefined;
  /** What was wrong with the bytes, if they were no HTTP or no event stream. */
  failure: Error | undefined;
  readonly ended: Promise<Ending>;

  readonly #socket: Socket;
  readonly #options: SubscribeOptions;
  readonly #http: HttpResponseParser;
  readonly #sse: SseParser;
  readonly #watchers = new Set<() => void>();
  readonly #refusal: Buffer[] = [];
  #settleEnded: (ending: Ending) => void = () => {};

  private constructor(socket: Socket, options: SubscribeOptions) {
    this.#socket = socket;
    this.#options = options;
    this.ended = new Promise((resolve) => {
      this.#settleEnded = resolve;
    });
    this.#sse = new SseParser({
      onEvent: (event) => this.#record(event),
      onIdOnly: (id) => this.idsWithoutEvent.push(id),
      onRetry: (ms) => this.retries.push(ms),
      onComment: () => {
        this.comments++;
      },
      onLineWithoutColon: (line) => this.linesWithoutColon.push(line),
    });
    this.#http = new HttpResponseParser({
      onHead: (head) => {
        this.head = head;
      },
      onBody: (chunk) => this.#receiveBody(chunk),
      onEnd: () => this.#finish('end'),
    });
    socket.on('data', (chunk) => this.#receive(chunk));
    socket.on('error', () => {});
    socket.on('close', () => this.#finish('cut'));
  }

  /** Asks; resolves when the head of the response has come, whatever its status, or when we broke before that. */
  static async ask(port: number, stream: string, options: SubscribeOptions = {}): Promise<SseSubscription> {
    const headers: Record<string, string> = { Accept: 'text/event-stream', ...options.headers };
    if (options.lastEventId !== undefined) headers['Last-Event-ID'] = options.lastEventId;
    const streams = options.streams?.map((name) => `stream=${name}`) ?? [];
    const cursor = options.cursor === undefined ? undefined : `cursor=${options.cursor}`;
    const query = [...streams, cursor, options.query];
    const queryText = query.filter((part) => part !== undefined).join('&');
    const one = options.streams === undefined ? `/${stream}` : '';
    const path = `/v1/streams${one}${queryText === '' ? '' : `?${queryText}`}`;

    const socket = connect({ host: '127.0.0.1', port, noDelay: true });
    const subscription = new SseSubscription(socket, options);
    socket.write(encodeRequest(options.request ?? { path, headers }));
    await subscription.until(
      `the head of a subscription to ${stream}`,
      () => subscription.head !== undefined || subscription.ending === 'broken',
    );
    return subscription;
  }

  /** Like `ask`, and fails unless the broker accepted. */
  static async open(port: number, stream: string, options: SubscribeOptions = {}): Promise<SseSubscription> {
    const subscription = await SseSubscription.ask(port, stream, options);
    if (subscription.status !== 200) {
      const refusal = await subscription.refusal();
      assert.fail(`subscribing to ${stream} answered ${refusal.status}: ${refusal.text}`);
    }
    return subscription;
  }

  get status(): number {
    return this.head?.status ?? 0;
  }

  header(name: string): string | undefined {
    return this.head?.headers.get(name.toLowerCase());
  }

  get lastEventId(): string {
    return this.#sse.lastEventId;
  }

  get seqs(): number[] {
    return this.events.filter((event) => event.carriesId).map((event) => seqOf(event.id));
  }

  get data(): string[] {
    return this.events.map((event) => event.data);
  }

  /** Resolves once the condition holds; it is tried after everything that comes. Fails if the end comes first. */
  async until(what: string, condition: () => boolean): Promise<void> {
    if (condition()) return;
    let watcher: (() => void) | undefined;
    const met = new Promise<void>((resolve, reject) => {
      watcher = () => {
        if (this.failure !== undefined) reject(this.failure);
        else if (condition()) resolve();
        else if (this.ending !== undefined) {
          reject(
            new Error(
              `the connection is over (${this.ending}) without ${what}, after ${this.eventCount} events`,
            ),
          );
        }
      };
      this.#watchers.add(watcher);
      watcher();
    });
    try {
      await withDeadline(what, met);
    } catch (error) {
      throw new Error(
        `${(error as Error).message}; ${this.eventCount} events came, last ${this.lastEventId}`,
      );
    } finally {
      if (watcher !== undefined) this.#watchers.delete(watcher);
    }
  }

  async untilEvents(count: number): Promise<SseEvent[]> {
    await this.until(`${count} events`, () => this.eventCount >= count);
    return this.events;
  }

  async untilSeq(seq: number): Promise<void> {
    await this.until(`seq ${seq}`, () => this.lastEventId !== '' && seqOf(this.lastEventId) >= seq);
  }

  /** Resolves when the priming frame has come: from then on this subscription stands at its position (contract 4.2). */
  async untilPrimed(): Promise<string> {
    await this.until('the priming frame', () => this.lastEventId !== '');
    return this.lastEventId;
  }

  async untilEnded(): Promise<Ending> {
    const ending = await withDeadline('the end of the subscription', this.ended);
    if (this.failure !== undefined) throw this.failure;
    return ending;
  }

  /** The whole answer where it was no stream. */
  async refusal(): Promise<HttpResponse> {
    await this.untilEnded();
    if (this.head === undefined) throw new Error('the connection closed without an answer');
    return new HttpResponse(this.head, Buffer.concat(this.#refusal));
  }

  /** Stops reading: the kernel's buffers fill, then the broker's writes stop. */
  stall(): void {
    this.#socket.pause();
  }

  unstall(): void {
    this.#socket.resume();
  }

  /** Breaks at once. Nothing that comes after is seen. `reset` sends RST, as a crashed client's kernel does. */
  cut({ reset = true } = {}): void {
    this.#finish('broken');
    if (reset) this.#socket.resetAndDestroy();
    else this.#socket.destroy();
  }

  #receive(chunk: Buffer): void {
    if (this.ending !== undefined) return;
    const allowed = (this.#options.cutAfterBytes ?? Number.POSITIVE_INFINITY) - this.bytesReceived;
    const seen = chunk.length > allowed ? chunk.subarray(0, allowed) : chunk;
    this.bytesReceived += seen.length;
    try {
      this.#http.push(seen);
    } catch (error) {
      this.failure = error as Error;
      this.cut();
    }
    if (chunk.length >= allowed) this.cut();
    this.#notify();
  }

  #receiveBody(chunk: Buffer): void {
    if (this.ending !== undefined) return;
    if (this.status !== 200) {
      this.#refusal.push(Buffer.from(chunk));
      return;
    }
    if (this.#options.keepText) this.text += chunk.toString('latin1');
    this.#sse.push(chunk);
  }

  #record(event: SseEvent): void {
    this.eventCount++;
    if (this.#options.keepEvents !== false) this.events.push(event);
    this.#options.onEvent?.(event, this);
  }

  #finish(ending: Ending): void {
    if (this.ending !== undefined) return;
    this.ending = ending;
    this.#sse.stop();
    this.#settleEnded(ending);
    this.#notify();
    if (ending === 'end') this.#socket.destroy();
  }

  #notify(): void {
    for (const watcher of [...this.#watchers]) watcher();
  }
}
