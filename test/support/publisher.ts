import type { GapChecker } from './gap-checker.js';
import { MEDIA_TYPES, publish } from './gapless-client.js';
import { HttpConnection } from './http.js';

export interface PublisherOptions {
  port: number;
  stream: string;
  name: string;
  checker: GapChecker;
  /** Data of event `index` of this publisher; must begin with something only it has. Default: its name and number. */
  data?: (unique: string) => string;
}

/** One closed-loop publisher on a connection of its own, which tells the gap checker what it did. */
export class Publisher {
  eventCount = 0;
  acked: { epoch: string; last: number } | null = null;
  readonly #options: PublisherOptions;
  #connection: HttpConnection | undefined;
  #publishCount = 0;

  constructor(options: PublisherOptions) {
    this.#options = options;
  }

  /** Publishes so many events as one batch and waits for the answer. */
  async publish(events: number): Promise<void> {
    const { port, stream, name, checker, data = (unique) => unique } = this.#options;
    this.#connection ??= await HttpConnection.open(port);
    const id = `${name}/${++this.#publishCount}`;
    const contents = Array.from({ length: events }, () => data(`${name}:${++this.eventCount}:`));
    checker.observe({ kind: 'publish-begun', publish: id, stream, contents });
    const published = await publish(this.#connection, stream, contents.join('\n'), MEDIA_TYPES.ndjson);
    checker.observe({ kind: 'publish-acked', publish: id, ...published });
    this.acked = { epoch: published.epoch, last: published.last };
  }

  close(): void {
    this.#connection?.destroy();
  }
}
