/**
 * A publisher that keeps an order: what it is given goes in batches, one request at a time, and each event counts once,
 * however often a request had to be sent (contract 3.4).
 */

import { untilAborted } from './abortable.js';
import { BATCH_TYPE, BatchBody, encodeEvent, sizeOf, type WireEvent } from './batch-body.js';
import { GaplessError, isRefusal } from './client-error.js';
import type { Connection } from './connection.js';
import { type EventData, type Fate, type Published, type PublishOptions, send } from './publish.js';
import { randomId } from './random-id.js';
import { stateOf } from './stream-state.js';

/** Where an option says a value, that is what holds without it. */
export interface PublisherOptions extends Omit<PublishOptions, 'ifHead'> {
  /** How long the first event of a batch waits for more, milliseconds; 0. While a request is under way they gather anyway. */
  readonly lingerMs?: number | undefined;
  /** Events of one request, at most; 500. */
  readonly batchEventsMax?: number | undefined;
  /** Bytes of one request, about; 256 KiB. A larger event goes alone. */
  readonly batchBytesMax?: number | undefined;
  /** Bytes that may wait for their answer; 8 MiB. Beyond it `publish` is refused, and `ready` waits. */
  readonly queueBytesMax?: number | undefined;
}

const BATCH_EVENTS_MAX = 500;
const BATCH_BYTES_MAX = 256 * 1024;
const QUEUE_BYTES_MAX = 8 * 1024 * 1024;

export class Publisher {
  readonly #connection: Connection;
  readonly #name: string;
  readonly #options: PublisherOptions;
  #producerId = randomId();
  /** Requests that the server has taken. */
  #seq = 0;
  /** Of the stream, as the last answer had it. */
  #epoch: string | null = null;
  /** Those that wait, oldest first; the newest takes events until it is full. */
  readonly #batches: Batch[] = [];
  #queuedBytes = 0;
  #running: Promise<void> | null = null;
  #lingers = true;
  #endLinger: () => void = () => undefined;
  #gaveRoom: () => void = () => undefined;
  #room: Promise<void> | null = null;
  /** Why nothing can follow any more. */
  #failure: GaplessError | null = null;

  constructor(connection: Connection, name: string, options: PublisherOptions = {}) {
    this.#connection = connection;
    this.#name = name;
    this.#options = options;
  }

  /**
   * Appends an event after all that were given before it. Resolves with its cursor when the server has it.
   *
   * @throws {GaplessError} `queue_full` when more waits than may; the refusal of the batch that the event was in;
   *   `producer_gap` when the stream is another than the one that was published to, for a broker in memory was started
   *   again or the stream was deleted: a new publisher begins there. When an attempt for a batch was not answered, and
   *   none after it was taken, nothing can follow it, and `outcome_unknown` is thrown from then on.
   */
  async publish(data: EventData, { type }: { readonly type?: string | undefined } = {}): Promise<string> {
    if (this.#failure !== null) throw this.#failure;
    if (!this.#hasRoom) throw new GaplessError('queue_full', 'more events wait for their answer than may');
    const event = encodeEvent({ data, type });
    const batch = this.#openBatch(event);
    const index = batch.body.count;
    this.#queuedBytes -= batch.body.bytes;
    batch.body.push(event);
    this.#queuedBytes += batch.body.bytes;
    if (this.#isFull(batch)) this.#endLinger();
    this.#running ??= this.#run();
    const { epoch, first } = await batch.outcome;
    return `${epoch}.${first + index}`;
  }

  /**
   * Publishes all of an iterable, no faster than the server takes it.
   * @returns the cursor of the last event; null when there was none.
   */
  async publishAll(
    source: AsyncIterable<EventData> | Iterable<EventData>,
    options: { readonly type?: string | undefined } = {},
  ): Promise<string | null> {
    const failed: unknown[] = [];
    let last: Promise<string | null> = Promise.resolve(null);
    for await (const data of untilAborted(source, this.#options.signal)) {
      await this.ready();
      last = this.publish(data, options);
      last.catch((error: unknown) => failed.push(error));
      if (failed.length > 0) break;
    }
    const cursor = await last;
    if (failed.length > 0) throw failed[0];
    return cursor;
  }

  /** Resolves when there is room for an event. @throws {GaplessError} when nothing can follow any more. */
  async ready(): Promise<void> {
    while (!this.#hasRoom && this.#failure === null) {
      this.#room ??= new Promise((resolve) => {
        this.#gaveRoom = resolve;
      });
      await this.#room;
    }
    if (this.#failure !== null) throw this.#failure;
  }

  /** Sends what waits without lingering, and resolves when all of it was answered. */
  async flush(): Promise<void> {
    if (this.#running !== null) {
      this.#lingers = false;
      this.#endLinger();
      await this.#running;
    }
    if (this.#failure !== null) throw this.#failure;
  }

  get #hasRoom(): boolean {
    return this.#queuedBytes < (this.#options.queueBytesMax ?? QUEUE_BYTES_MAX);
  }

  #isFull({ body }: Batch): boolean {
    const { batchEventsMax = BATCH_EVENTS_MAX, batchBytesMax = BATCH_BYTES_MAX } = this.#options;
    return body.count >= batchEventsMax || body.bytes >= batchBytesMax;
  }

  /** One that takes the event. What is refused for its size is refused alone. */
  #openBatch(event: WireEvent): Batch {
    const { batchBytesMax = BATCH_BYTES_MAX } = this.#options;
    const newest = this.#batches.at(-1);
    if (newest !== undefined && !this.#isFull(newest) && newest.body.bytes + sizeOf(event) <= batchBytesMax)
      return newest;
    // Nothing more is added to that one.
    this.#endLinger();
    const batch = new Batch();
    this.#batches.push(batch);
    return batch;
  }

  async #run(): Promise<void> {
    for (let oldest = this.#batches[0]; oldest !== undefined; oldest = this.#batches[0]) {
      if (this.#lingers && this.#batches.length === 1 && !this.#isFull(oldest)) await this.#linger();
      this.#batches.shift();
      await this.#send(oldest);
      this.#queuedBytes -= oldest.body.bytes;
      this.#room = null;
      this.#gaveRoom();
    }
    this.#lingers = true;
    this.#running = null;
  }

  #linger(): Promise<void> {
    return new Promise((resolve) => {
      const timer = setTimeout(resolve, this.#options.lingerMs ?? 0);
      this.#endLinger = () => {
        clearTimeout(timer);
        resolve();
      };
    });
  }

  async #send({ body, resolve, reject }: Batch): Promise<void> {
    if (this.#failure !== null) return reject(this.#failure);
    const fate = { isUnknown: false };
    try {
      const published = await this.#publishKnown(body.encode(), fate);
      this.#seq++;
      this.#epoch = published.epoch;
      resolve(published);
    } catch (error) {
      // A refusal has changed nothing, and the next batch takes its place. Where an attempt had no answer, whether the
      // batch is there is not known: what followed could stand before it, or be taken for it.
      if (fate.isUnknown) this.#failure = lostTrack(error);
      reject(error);
    }
  }

  /** Publishes as the next of this producer; where the server has forgotten the producer, as the first of a new one. */
  async #publishKnown(body: Uint8Array<ArrayBuffer>, fate: Fate): Promise<Published> {
    try {
      return await this.#publishNext(body, fate);
    } catch (error) {
      if (fate.isUnknown || !(await this.#isForgotten(error))) throw error;
    }
    this.#producerId = randomId();
    this.#seq = 0;
    return this.#publishNext(body, fate);
  }

  #publishNext(body: Uint8Array<ArrayBuffer>, fate: Fate): Promise<Published> {
    const headers = {
      'Producer-Id': this.#producerId,
      'Producer-Epoch': '0',
      'Producer-Seq': String(this.#seq),
    };
    return send(this.#connection, this.#name, { type: BATCH_TYPE, body, headers }, this.#options, fate);
  }

  /**
   * Whether the server knows nothing of this producer any more, which it remembers for a day after its last publish, and
   * the stream is the one that was published to.
   */
  async #isForgotten(error: unknown): Promise<boolean> {
    if (!isRefusal(error, 'producer_gap') || error.problem['expected'] !== 0) return false;
    const state = await stateOf(this.#connection, this.#name);
    return state?.epoch === this.#epoch;
  }
}

/** Events that go in one request. */
class Batch {
  readonly body = new BatchBody();
  readonly outcome: Promise<Published>;
  resolve: (published: Published) => void = () => undefined;
  reject: (error: unknown) => void = () => undefined;

  constructor() {
    this.outcome = new Promise((resolve, reject) => {
      this.resolve = resolve;
      this.reject = reject;
    });
    // Those who published listen; a batch alone has nobody.
    this.outcome.catch(() => undefined);
  }
}

function lostTrack(cause: unknown): GaplessError {
  return new GaplessError('outcome_unknown', 'a batch was not answered: whether it is there is not known', {
    cause,
  });
}
