/**
 * `gapless/client`: what programs use, in browsers and in Node. No dependencies.
 */

import { BATCH_TYPE, BatchBody, encodeEvent, textOf } from './batch-body.js';
import { errorOf } from './client-error.js';
import { type Body, Connection, type ConnectionOptions, streamPath } from './connection.js';
import { text } from './event-data.js';
import { MultiSubscription, type SubscribeManyOptions } from './multi-subscription.js';
import { PrefixSubscription, type SubscribePrefixOptions } from './prefix-subscription.js';
import { type EventData, type NewEvent, type Published, type PublishOptions, send } from './publish.js';
import { Publisher, type PublisherOptions } from './publisher.js';
import { randomId } from './random-id.js';
import { listStreams, type StreamConfig, type StreamState, stateOf } from './stream-state.js';
import { type SubscribeOptions, Subscription } from './subscription.js';

export type { UnavailableReason } from './client-error.js';
export { GaplessError, ResumeUnavailableError, StreamDeletedError } from './client-error.js';
export type { ConnectionOptions, Token } from './connection.js';
export { bytes, type Decode, json, type RawEvent, type StreamEvent, text } from './event-data.js';
export type { FollowOptions, SubscriptionStatus } from './following.js';
export type { EventOfMany, FollowManyOptions, RawEventOfMany } from './following-many.js';
export type { MultiSubscription, SubscribeManyOptions } from './multi-subscription.js';
export type { PrefixSubscription, SubscribePrefixOptions } from './prefix-subscription.js';
export type { EventData, NewEvent, Published, PublishOptions } from './publish.js';
export type { Publisher, PublisherOptions } from './publisher.js';
export { aiSdkResume, recordSse, resumeAfter } from './sse-responses.js';
export type { StreamConfig, StreamState } from './stream-state.js';
export type { SubscribeOptions, Subscription } from './subscription.js';
export { publishTokens, readTokens } from './tokens.js';

export interface PublishOneOptions extends PublishOptions {
  readonly type?: string | undefined;
}

/** A broker, as a program sees it. Holds no connection open by itself. */
export class GaplessClient {
  readonly #connection: Connection;

  constructor(options: ConnectionOptions) {
    this.#connection = new Connection(options);
  }

  /**
   * Appends an event, once, however often it had to be sent. Text and bytes are taken as they are; anything else
   * becomes JSON.
   *
   * @throws {GaplessError}
   */
  async publish(
    name: string,
    data: EventData,
    { type, ...options }: PublishOneOptions = {},
  ): Promise<Published> {
    // A header holds ASCII safely (contract 3.2), and a batch of one anything.
    if (type !== undefined && !/^[\x20-\x7e]*$/.test(type))
      return this.publishBatch(name, [{ data, type }], options);
    const headers = type === undefined ? {} : { 'Gapless-Event': type };
    return this.#send(name, { ...bodyOf(data), headers }, options);
  }

  /** Appends several events with consecutive seqs, all or none, and once. @throws {GaplessError} */
  async publishBatch(
    name: string,
    events: readonly NewEvent[],
    options: PublishOptions = {},
  ): Promise<Published> {
    const batch = new BatchBody();
    for (const event of events) batch.push(encodeEvent(event));
    return this.#send(name, { type: BATCH_TYPE, body: batch.encode(), headers: {} }, options);
  }

  /** For many events in order: see {@link Publisher}. */
  publisher(name: string, options: PublisherOptions = {}): Publisher {
    return new Publisher(this.#connection, name, options);
  }

  /** Follows a stream: see {@link Subscription}. Its events have their data as text unless `decode` says otherwise. */
  subscribe(name: string, options?: Omit<SubscribeOptions<string>, 'decode'>): Subscription<string>;
  subscribe<T>(name: string, options: SubscribeOptions<T>): Subscription<T>;
  subscribe(name: string, options: Partial<SubscribeOptions<unknown>> = {}): Subscription<unknown> {
    return new Subscription(this.#connection, name, { decode: text, ...options });
  }

  /** Follows up to 16 streams over one connection: see {@link MultiSubscription}. */
  subscribeMany(
    names: readonly string[],
    options?: Omit<SubscribeManyOptions<string>, 'decode'>,
  ): MultiSubscription<string>;
  subscribeMany<T>(names: readonly string[], options: SubscribeManyOptions<T>): MultiSubscription<T>;
  subscribeMany(
    names: readonly string[],
    options: Partial<SubscribeManyOptions<unknown>> = {},
  ): MultiSubscription<unknown> {
    return new MultiSubscription(this.#connection, names, { decode: text, ...options });
  }

  /** Follows all streams whose names begin so, also those made later, over one connection: see {@link PrefixSubscription}. */
  subscribePrefix(
    prefix: string,
    options?: Omit<SubscribePrefixOptions<string>, 'decode'>,
  ): PrefixSubscription<string>;
  subscribePrefix<T>(prefix: string, options: SubscribePrefixOptions<T>): PrefixSubscription<T>;
  subscribePrefix(
    prefix: string,
    options: Partial<SubscribePrefixOptions<unknown>> = {},
  ): PrefixSubscription<unknown> {
    return new PrefixSubscription(this.#connection, prefix, { decode: text, ...options });
  }

  /** Makes a stream, or finds it as it is asked for (contract 2.1). @throws {GaplessError} `config_conflict` */
  async createStream(name: string, config: StreamConfig = {}): Promise<void> {
    await this.#ask(streamPath(name), {
      method: 'PUT',
      body: JSON.stringify(config),
      headers: { 'Content-Type': 'application/json' },
    });
  }

  /** Where a stream stands (contract 2.2); null when there is none. */
  async state(name: string): Promise<StreamState | null> {
    return stateOf(this.#connection, name);
  }

  /** All streams, in the order of their names, with where they stand (contract 2.2). */
  streams({ prefix = '' }: { readonly prefix?: string } = {}): AsyncGenerator<StreamState, void, void> {
    return listStreams(this.#connection, prefix);
  }

  /** Nothing can be appended after this; who reads to the end is told so (contract 2.3). */
  async closeStream(name: string): Promise<void> {
    await this.#ask(`${streamPath(name)}/close`, { method: 'POST' });
  }

  /** Removes a stream with its events (contract 2.3). */
  async deleteStream(name: string): Promise<void> {
    await this.#ask(streamPath(name), { method: 'DELETE' });
  }

  #send(
    name: string,
    request: { body: Body; type: string; headers: Readonly<Record<string, string>> },
    options: PublishOptions,
  ): Promise<Published> {
    const headers = { ...request.headers, 'Idempotency-Key': randomId() };
    return send(this.#connection, name, { ...request, headers }, options);
  }

  async #ask(path: string, options: Parameters<Connection['request']>[1]): Promise<void> {
    const response = await this.#connection.ask(path, options);
    if (!response.ok) throw await errorOf(response);
  }
}

function bodyOf(data: EventData): { body: Body; type: string } {
  if (data instanceof Uint8Array) return { body: data, type: 'application/octet-stream' };
  if (typeof data === 'string') return { body: data, type: 'text/plain' };
  return { body: textOf(data), type: 'application/json' };
}
