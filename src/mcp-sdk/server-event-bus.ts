/**
 * Change events for all processes of a server: what one publishes, the listeners of all of them get, in one order. A
 * broken connection to the broker is resumed; where events are gone, listeners are told that everything may have
 * changed, which makes clients fetch it again.
 */

import { sleep } from '../client/backoff.js';
import {
  type ConnectionOptions,
  GaplessClient,
  GaplessError,
  type Publisher,
  ResumeUnavailableError,
  StreamDeletedError,
} from '../client/client.js';
import { isRefusal } from '../client/client-error.js';
import type { ServerEvent } from './sdk-shapes.js';

export interface GaplessServerEventBusOptions {
  /** The broker, or how it is reached. */
  readonly broker: GaplessClient | ConnectionOptions;
  /** The stream that the processes of one server share; `mcp-server-events` without it. */
  readonly stream?: string | undefined;
  /** Time before the first attempt to come back to the broker, milliseconds; 1 s without it. Then doubled, up to 30 s. */
  readonly retryMs?: number | undefined;
  /** Told of what a listener threw, of an event that could not be published, and of a broker that refuses to be read. */
  readonly onError?: ((error: unknown) => void) | undefined;
}

const STREAM = 'mcp-server-events';
/** Far more than are missed in a break. */
const CONFIG = { retention: { events: 1000 } };
/** After a refusal that trying again may not cure: a token may be renewed, an operator may act. */
const REFUSED_RETRY_MS = 5000;

const MISSED: readonly ServerEvent[] = [
  { kind: 'tools_list_changed' },
  { kind: 'prompts_list_changed' },
  { kind: 'resources_list_changed' },
];

export class GaplessServerEventBus {
  /** Resolves when this process hears of all that is published from now on. */
  readonly ready: Promise<void>;
  readonly #client: GaplessClient;
  readonly #stream: string;
  #publisher: Publisher;
  readonly #listeners = new Set<(event: ServerEvent) => void>();
  readonly #closing = new AbortController();
  readonly #onError: (error: unknown) => void;
  readonly #retryMs: number | undefined;
  #isOpen: () => void = () => undefined;
  #hasMissed = false;

  constructor({ broker, stream = STREAM, retryMs, onError = () => undefined }: GaplessServerEventBusOptions) {
    this.#client = broker instanceof GaplessClient ? broker : new GaplessClient(broker);
    this.#stream = stream;
    this.#onError = onError;
    this.#retryMs = retryMs;
    this.#publisher = this.#newPublisher();
    this.ready = new Promise((resolve) => {
      this.#isOpen = resolve;
    });
    void this.#follow();
  }

  /** Reaches listeners, those of this process too, when it comes back from the broker. */
  publish(event: ServerEvent): void {
    this.#publish(this.#publisher, event);
  }

  subscribe(listener: (event: ServerEvent) => void): () => void {
    // A function of its own for each subscription, for one listener may subscribe twice.
    const entry = (event: ServerEvent): void => listener(event);
    this.#listeners.add(entry);
    return () => {
      this.#listeners.delete(entry);
    };
  }

  /** Lets go of the broker; nothing is published or heard after this. */
  close(): void {
    this.#closing.abort();
    this.#listeners.clear();
  }

  #publish(publisher: Publisher, event: ServerEvent): void {
    publisher.publish(event).catch((error: unknown) => {
      if (this.#closing.signal.aborted) return;
      if (!isRefusal(error, 'producer_gap')) return this.#onError(error);
      // The broker has lost the stream and made another: to that the publisher's count means nothing.
      if (this.#publisher === publisher) this.#publisher = this.#newPublisher();
      this.#publish(this.#publisher, event);
    });
  }

  #newPublisher(): Publisher {
    return this.#client.publisher(this.#stream, { signal: this.#closing.signal });
  }

  async #follow(): Promise<void> {
    const { signal } = this.#closing;
    while (!signal.aborted) {
      try {
        await this.#client.createStream(this.#stream, CONFIG).catch(ignoreConflict);
        await this.#listen(signal);
        throw new GaplessError('stream_closed', 'somebody has closed the stream of the bus');
      } catch (error) {
        if (signal.aborted) return;
        if (error instanceof ResumeUnavailableError || error instanceof StreamDeletedError) {
          this.#hasMissed = true;
          continue;
        }
        this.#onError(error);
        await sleep(REFUSED_RETRY_MS, signal).catch(() => undefined);
      }
    }
  }

  async #listen(signal: AbortSignal): Promise<void> {
    const events = this.#client.subscribe(this.#stream, {
      signal,
      retryMs: this.#retryMs,
      onStatus: ({ state }) => {
        if (state === 'open') this.#opened();
      },
    });
    for await (const { data } of events) this.#deliver(JSON.parse(data) as ServerEvent);
  }

  /** What is missed is told when nothing more can be. */
  #opened(): void {
    this.#isOpen();
    if (!this.#hasMissed) return;
    this.#hasMissed = false;
    for (const event of MISSED) this.#deliver(event);
  }

  #deliver(event: ServerEvent): void {
    for (const listener of [...this.#listeners]) {
      try {
        listener(event);
      } catch (error) {
        this.#onError(error);
      }
    }
  }
}

function ignoreConflict(error: unknown): void {
  if (!isRefusal(error, 'config_conflict')) throw error;
}
