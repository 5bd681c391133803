import { randomBytes } from 'node:crypto';
import { setTimeout as delay } from 'node:timers/promises';
import type { Answer } from './answer.js';
import { EventStream, type Where } from './event-stream.js';
import { expect, expectCursor, expectEqual, expectStatus } from './expect.js';
import { type Endpoint, exchange, type Question } from './http-client.js';

export interface Published {
  readonly epoch: string;
  readonly first: number;
  readonly last: number;
}

/** `Gapless-Epoch`, `-Floor` and `-Head` of an answer. */
export interface Positions {
  readonly epoch: string;
  readonly floor: number;
  readonly head: number;
}

export const MEDIA = {
  json: 'application/json',
  text: 'text/plain',
  ndjson: 'application/x-ndjson',
  binary: 'application/octet-stream',
  msgpack: 'application/msgpack',
  batch: 'application/vnd.gapless.batch+json',
} as const;

const POLL_MS = 100;
const EVENTUALLY_MS_MAX = 20_000;
const NAMES_MAX = 10_000;

/** The server under test, and the streams that the suite made there. */
export class Target {
  /** All streams of this run begin with it, so that a server in use can be told apart from them. */
  readonly prefix = `conformance-${randomBytes(5).toString('hex')}-`;
  readonly endpoint: Endpoint;
  readonly #names = new Set<string>();

  constructor(endpoint: Endpoint) {
    this.endpoint = endpoint;
  }

  /** A name that no stream has. */
  freshName(word = 'stream'): string {
    expect(this.#names.size < NAMES_MAX, 'the suite makes too many streams');
    return this.named(`${this.prefix}${this.#names.size + 1}-${word}`);
  }

  /** A name that a check has made from a fresh one. */
  named(name: string): string {
    this.#names.add(name);
    return name;
  }

  /** Makes a stream by contract 2.1. */
  async createStream(config: object = {}, word?: string): Promise<{ name: string; epoch: string }> {
    const name = this.freshName(word);
    const answer = await this.put(name, config);
    expectStatus(answer, 201, 'creating a stream');
    return { name, epoch: (answer.json() as { epoch: string }).epoch };
  }

  put(stream: string, config: object): Promise<Answer> {
    return this.exchange({
      method: 'PUT',
      path: `/v1/streams/${stream}`,
      headers: { 'Content-Type': MEDIA.json },
      body: JSON.stringify(config),
    });
  }

  get hasToken(): boolean {
    return this.endpoint.token !== undefined;
  }

  exchange(question: Question): Promise<Answer> {
    return exchange(this.endpoint, question);
  }

  /** Without the token of this run. */
  exchangeAsNobody(question: Question): Promise<Answer> {
    return exchange({ url: this.endpoint.url }, question);
  }

  get(path: string, headers: Readonly<Record<string, string>> = {}): Promise<Answer> {
    return this.exchange({ path, headers });
  }

  /** A publish, whatever comes of it. */
  post(
    stream: string,
    body: string | Uint8Array,
    type: string = MEDIA.text,
    headers: Readonly<Record<string, string>> = {},
  ): Promise<Answer> {
    const typed = type === '' ? {} : { 'Content-Type': type };
    return this.exchange({
      method: 'POST',
      path: `/v1/streams/${stream}`,
      headers: { ...typed, ...headers },
      body,
    });
  }

  /** A publish that must succeed, with the answer of contract 3.3. */
  async publish(
    stream: string,
    body: string | Uint8Array,
    type?: string,
    headers?: Readonly<Record<string, string>>,
  ): Promise<Published> {
    const answer = await this.post(stream, body, type, headers);
    expectStatus(answer, 200, `publishing ${type ?? MEDIA.text}`);
    const published = answer.json() as Published;
    const cursor = expectCursor(answer.header('gapless-cursor'), 'Gapless-Cursor of a publish');
    expectEqual(cursor, { epoch: published.epoch, seq: published.last }, 'Gapless-Cursor of a publish');
    expect(published.first >= 1 && published.last >= published.first, `${answer.text} are no positions`);
    return published;
  }

  /** Texts without line breaks, as one batch. */
  publishLines(stream: string, lines: readonly string[]): Promise<Published> {
    return this.publish(stream, lines.join('\n'), MEDIA.ndjson);
  }

  ask(stream: string, where: Where = {}): Promise<EventStream> {
    return EventStream.ask(this.endpoint, `/${stream}`, where);
  }

  /** Several streams over one connection (contract 4.10); they stand in the query. */
  askMany(where: Where): Promise<EventStream> {
    return EventStream.ask(this.endpoint, '', where);
  }

  /** A subscription that must be accepted. */
  async subscribe(stream: string, where: Where = {}): Promise<EventStream> {
    return accepted(await this.ask(stream, where), where);
  }

  async subscribeToMany(where: Where): Promise<EventStream> {
    return accepted(await this.askMany(where), where);
  }

  page(stream: string, query = '', accept: string = MEDIA.json): Promise<Answer> {
    return this.get(`/v1/streams/${stream}${query === '' ? '' : `?${query}`}`, { Accept: accept });
  }

  /** By HEAD (contract 2.2). */
  async positions(stream: string): Promise<Positions> {
    const answer = await this.exchange({ method: 'HEAD', path: `/v1/streams/${stream}` });
    expectStatus(answer, 200, 'HEAD of a stream');
    return positionsOf((name) => answer.header(name), 'HEAD of a stream');
  }

  /** Asks again and again until it holds; undefined and false are not yet. */
  async eventually<T>(what: string, probe: () => Promise<T | undefined | false>): Promise<T> {
    const endMs = performance.now() + EVENTUALLY_MS_MAX;
    for (;;) {
      const result = await probe();
      if (result !== undefined && result !== false) return result;
      expect(performance.now() < endMs, `${what} did not happen in ${EVENTUALLY_MS_MAX} ms`);
      await delay(POLL_MS);
    }
  }

  /** Removes every stream of this run that is left. */
  async cleanUp(): Promise<void> {
    for (const name of this.#names)
      await this.exchange({ method: 'DELETE', path: `/v1/streams/${name}` }).catch(() => undefined);
  }
}

async function accepted(subscription: EventStream, where: Where): Promise<EventStream> {
  if (subscription.status !== 200)
    expectStatus(await subscription.refusal(), 200, `subscribing with ${JSON.stringify(where)}`);
  return subscription;
}

/** The positions that the headers of an answer name. */
export function positionsOf(header: (name: string) => string | undefined, what: string): Positions {
  const epoch = header('gapless-epoch');
  const floor = Number(header('gapless-floor') ?? Number.NaN);
  const head = Number(header('gapless-head') ?? Number.NaN);
  expect(epoch !== undefined && /^[a-z0-9]{8,16}$/.test(epoch), `${what}: Gapless-Epoch is ${epoch}`);
  expect(Number.isSafeInteger(floor) && floor >= 1, `${what}: Gapless-Floor is ${floor}`);
  expect(Number.isSafeInteger(head) && head >= 0, `${what}: Gapless-Head is ${head}`);
  expect(floor <= head + 1, `${what}: the floor ${floor} lies above the head ${head}`);
  return { epoch, floor, head };
}
