import assert from 'node:assert/strict';
import { setTimeout as delay } from 'node:timers/promises';
import { positionOf, range } from '../support/cursor.js';
import { eventually, withDeadline } from '../support/deadline.js';
import { GapChecker } from '../support/gap-checker.js';
import { MEDIA_TYPES, type Page, type Problem, publishRequest } from '../support/gapless-client.js';
import { HttpConnection, type HttpRequest, type HttpResponse } from '../support/http.js';
import type { Prng } from '../support/prng.js';
import { answeredOf, producerRequest } from '../support/producer.js';
import { SseSubscription } from '../support/sse-client.js';

const PUBLISHERS_PER_STREAM = 3;
/** They send a key with each publish, where the others count theirs. */
const KEYED_PER_STREAM = 2;
const READERS_PER_STREAM = 4;
const PAGERS_PER_STREAM = 2;
const EVENTS_MAX = 10;
const PAUSE_MS = 20;
/** A broker that has not answered by then may be stopped: the client goes to another. */
const PATIENCE_MS = 3000;
const CUT_EVENTS_MAX = 400;

interface Batch {
  stream: string;
  id: string;
  seq: number;
  lines: readonly string[];
}
type RequestOf = (batch: Batch) => HttpRequest;

const counted: RequestOf = (batch) => producerRequest({ ...batch, epoch: 0 });
const keyed: RequestOf = ({ stream, id, seq, lines }) =>
  publishRequest(stream, lines.join('\n'), MEDIA_TYPES.ndjson, { 'Idempotency-Key': `${id}-${seq}` });

/** Where a reader stands when it comes; null: nowhere yet. */
interface From {
  reader: string;
  connection: string;
  cursor: string | null;
}
type ReadOnce = (from: From) => Promise<string | null>;

/**
 * Publishers and subscribers who go from broker to broker: whoever breaks, is refused for now or hears nothing comes back
 * at another one, with the publish that was not answered, or the id that was seen last.
 */
export class RoamingCrew {
  readonly checker = new GapChecker();
  answers = 0;
  retries = 0;
  resumes = 0;
  readonly #prng: Prng;
  readonly #ports: () => readonly number[];
  readonly #streams: readonly string[];
  readonly #heads = new Map<string, number>();
  #publishes = true;
  #isAbandoned = false;
  #publishing: Promise<unknown> = Promise.resolve();
  #reading: Promise<unknown> = Promise.resolve();

  /** @param ports of the brokers, whether they are up or not. */
  constructor(options: { prng: Prng; ports: () => readonly number[]; streams: readonly string[] }) {
    this.#prng = options.prng;
    this.#ports = options.ports;
    this.#streams = options.streams;
  }

  begin(): void {
    const each = (count: number, act: (stream: string, index: number) => Promise<void>) =>
      Promise.all(this.#streams.flatMap((stream) => range(1, count).map((index) => act(stream, index))));
    this.#publishing = Promise.all([
      each(PUBLISHERS_PER_STREAM, (stream, index) => this.#publish(stream, `p${index}`, counted)),
      each(KEYED_PER_STREAM, (stream, index) => this.#publish(stream, `k${index}`, keyed)),
    ]);
    this.#reading = Promise.all([
      each(READERS_PER_STREAM, (stream, index) =>
        this.#read(stream, `r${index}/${stream}`, (from) => this.#readOnce(stream, from)),
      ),
      each(PAGERS_PER_STREAM, (stream, index) =>
        this.#read(stream, `g${index}/${stream}`, (from) => this.#page(stream, from)),
      ),
    ]);
    // Whoever waits reports it; until then nothing is unhandled.
    this.#publishing.catch(() => undefined);
    this.#reading.catch(() => undefined);
  }

  /** Resolves after so many more answers; fails as soon as one of the crew does. */
  async untilAnswers(count: number): Promise<void> {
    const wanted = this.answers + count;
    const answered = eventually(`${count} answers`, () => this.answers >= wanted, 90_000);
    await Promise.race([
      answered,
      this.#publishing.then(() => assert.fail('ended by itself')),
      this.#reading,
    ]);
  }

  /** Every publish is answered, and every reader has read to the end. */
  async end(): Promise<void> {
    this.#publishes = false;
    await withDeadline('the last answers', this.#publishing, 60_000);
    await withDeadline('the last events', this.#reading, 60_000);
  }

  /** Lets go of everything as it is, so that a test that failed ends. */
  abandon(): void {
    this.#publishes = false;
    this.#isAbandoned = true;
  }

  get #port(): number {
    return this.#prng.pick(this.#ports());
  }

  async #publish(stream: string, id: string, requestOf: RequestOf): Promise<void> {
    for (let seq = 0; this.#publishes; seq++) {
      const publish = `${stream}/${id}/${seq}`;
      const lines = range(1, this.#prng.between(1, EVENTS_MAX)).map((index) => `${publish}:${index}`);
      const asked = requestOf({ stream, id, seq, lines });
      this.checker.observe({ kind: 'publish-begun', publish, stream, contents: lines });
      while (!this.#isAbandoned) {
        const response = await this.#ask(async (connection) => connection.request(asked));
        if (response?.status === 200) {
          const { isDuplicate: _isDuplicate, ...published } = answeredOf(response);
          this.checker.observe({ kind: 'publish-acked', publish, ...published });
          this.#heads.set(stream, Math.max(this.#heads.get(stream) ?? 0, published.last));
          break;
        }
        this.retries++;
        if (response !== null) this.#mustBeTemporary(response);
        await delay(PAUSE_MS);
      }
      this.answers++;
    }
  }

  #mustBeTemporary(response: HttpResponse): void {
    const { code } = response.json<Problem>();
    const isTemporary = ['log_unavailable', 'commit_unknown', 'backpressure', 'draining'].includes(code);
    assert.ok(isTemporary, `${response.status}: ${response.text}`);
  }

  /** Null: there was no answer. */
  async #ask(act: (connection: HttpConnection) => Promise<HttpResponse>): Promise<HttpResponse | null> {
    const connection = await HttpConnection.open(this.#port).catch(() => null);
    if (connection === null) return null;
    const late = setTimeout(() => connection.destroy(), PATIENCE_MS);
    try {
      return await act(connection);
    } catch {
      return null;
    } finally {
      clearTimeout(late);
      connection.destroy();
    }
  }

  async #read(stream: string, reader: string, readOnce: ReadOnce): Promise<void> {
    let cursor: string | null = null;
    for (let number = 1; ; number++) {
      if (this.#isDone(stream, cursor)) return;
      cursor = await readOnce({ reader, connection: `${reader}#${number}`, cursor });
      if (cursor !== null && number > 1) this.resumes++;
      await delay(PAUSE_MS);
    }
  }

  #isDone(stream: string, cursor: string | null): boolean {
    if (this.#isAbandoned) return true;
    if (this.#publishes || cursor === null) return false;
    return positionOf(cursor).seq >= (this.#heads.get(stream) ?? 0);
  }

  /** One page. @returns where the reader stands afterwards. */
  async #page(stream: string, { reader, connection, cursor }: From): Promise<string | null> {
    const path = `/v1/streams/${stream}?cursor=${cursor ?? 'earliest'}`;
    const response = await this.#ask((asked) =>
      asked.request({ path, headers: { Accept: MEDIA_TYPES.json } }),
    );
    if (response === null) return cursor;
    if (response.status !== 200) {
      this.#mustBeTemporary(response);
      return cursor;
    }
    const { events, next } = response.json<Page>();
    const first = events[0];
    if (first === undefined) return cursor;
    const { epoch, seq } = positionOf(first.id);
    const after = cursor === null ? seq - 1 : positionOf(cursor).seq;
    const joined = cursor === null;
    this.checker.observe({ kind: 'connected', connection, reader, stream, epoch, after, joined });
    for (const { id, data } of events) {
      this.checker.observe({ kind: 'event', connection, ...positionOf(id), content: data });
    }
    assert.equal(next, events.at(-1)?.id);
    return next;
  }

  /** One connection. @returns where the reader stands afterwards. */
  async #readOnce(stream: string, { reader, connection, cursor }: From): Promise<string | null> {
    const { checker } = this;
    const cutAfter = this.#prng.between(1, CUT_EVENTS_MAX);
    let seen = 0;
    let last = cursor;
    let heardAt = performance.now();
    const connected = (from: SseSubscription): void => {
      const after = cursor ?? from.idsWithoutEvent[0];
      const epoch = from.header('gapless-epoch');
      assert.ok(after !== undefined && epoch !== undefined);
      const joined = cursor === null;
      checker.observe({
        kind: 'connected',
        connection,
        reader,
        stream,
        epoch,
        after: positionOf(after).seq,
        joined,
      });
    };
    const opened = SseSubscription.ask(this.#port, stream, {
      ...(cursor === null ? { cursor: 'earliest' } : { lastEventId: cursor }),
      keepEvents: false,
      onEvent: (event, from) => {
        if (seen++ === 0) connected(from);
        heardAt = performance.now();
        checker.observe({ kind: 'event', connection, ...positionOf(event.id), content: event.data });
        last = event.id;
        if (seen === cutAfter) from.cut();
      },
    }).catch(() => null);
    const subscription = await Promise.race([opened, delay(PATIENCE_MS, null)]);
    if (subscription === null) {
      void opened.then((late) => late?.cut());
      return last;
    }
    if (subscription.status !== 200) {
      this.#mustBeTemporary(await subscription.refusal());
      return last;
    }
    while (subscription.ending === undefined) {
      const isSilent = performance.now() - heardAt > PATIENCE_MS;
      if (isSilent || this.#isDone(stream, last)) subscription.cut();
      else await Promise.race([subscription.ended, delay(100)]);
    }
    return last;
  }
}
