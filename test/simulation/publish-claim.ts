/** How a publisher says which publish it is, so that it can send it again (contract 3.4). */
export interface PublishClaim {
  /** The headers of the publish at hand to a stream; the same in each attempt. */
  headers(stream: string): Record<string, string>;
  /** It was appended: the next one is another. */
  appended(stream: string): void;
  /** What became of it is not known, and it is not sent again. */
  lost(stream: string): void;
}

/** A key for each publish. */
export class KeyClaim implements PublishClaim {
  readonly #name: string;
  #publishes = 0;

  constructor(name: string) {
    this.#name = name;
  }

  headers(): Record<string, string> {
    return { 'idempotency-key': `${this.#name}-${this.#publishes}` };
  }

  appended(): void {
    this.#publishes++;
  }

  lost(): void {
    this.#publishes++;
  }
}

interface Count {
  epoch: number;
  seq: number;
}

/** A producer, which counts its publishes to each stream. */
export class ProducerClaim implements PublishClaim {
  readonly #name: string;
  readonly #counts = new Map<string, Count>();

  constructor(name: string) {
    this.#name = name;
  }

  headers(stream: string): Record<string, string> {
    const { epoch, seq } = this.#count(stream);
    return { 'producer-id': this.#name, 'producer-epoch': String(epoch), 'producer-seq': String(seq) };
  }

  appended(stream: string): void {
    this.#count(stream).seq++;
  }

  /** It begins again, and shuts out what may still be on its way. */
  lost(stream: string): void {
    const count = this.#count(stream);
    count.epoch++;
    count.seq = 0;
  }

  #count(stream: string): Count {
    let count = this.#counts.get(stream);
    if (count === undefined) {
      count = { epoch: 0, seq: 0 };
      this.#counts.set(stream, count);
    }
    return count;
  }
}
