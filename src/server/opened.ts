/**
 * What a broker has opened, to be closed again, the last first: when it ends, or when it could not be started. A program
 * that has a broker within goes on after either.
 */
export class Opened {
  readonly #closes: (() => Promise<unknown> | void)[] = [];
  #closed: Promise<void> | null = null;

  /** Something was opened, and `close` closes it. */
  add(close: () => Promise<unknown> | void): void {
    this.#closes.push(close);
  }

  /** Closes all. Who asks for it again waits for the same end. @throws what the first of them has thrown. */
  close(): Promise<void> {
    this.#closed ??= this.#closeAll();
    return this.#closed;
  }

  async #closeAll(): Promise<void> {
    const failures: unknown[] = [];
    for (const close of this.#closes.reverse()) {
      try {
        await close();
      } catch (error) {
        failures.push(error);
      }
    }
    if (failures.length > 0) throw failures[0];
  }
}
