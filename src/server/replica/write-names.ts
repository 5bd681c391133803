/**
 * Names what this process writes to a log that brokers share, so that it knows its own writes again.
 */

export class WriteNames {
  readonly #process: string;
  #writes = 0;

  /** @param process a name that no other process has. */
  constructor(process: string) {
    this.#process = process;
  }

  next(): string {
    return `${this.#process}.${++this.#writes}`;
  }

  /** The process that wrote an entry. */
  processOf({ writer }: { readonly writer: string }): string {
    return writer.slice(0, writer.lastIndexOf('.'));
  }

  isOwn({ writer }: { readonly writer: string }): boolean {
    return writer.startsWith(`${this.#process}.`);
  }
}
