/** The calls that one answer is for, by their ids as JSON. */
export class OpenCalls {
  readonly #unanswered = new Set<string>();
  /** Those that the client has cancelled: their answer may never come, and nobody waits for it. */
  readonly #cancelled = new Set<string>();

  constructor(calls: readonly string[]) {
    for (const call of calls) this.#unanswered.add(call);
  }

  /** Whether all are answered. */
  get areAnswered(): boolean {
    return this.#unanswered.size === 0;
  }

  /** Whether the client waits for none that is not answered. */
  get areCancelled(): boolean {
    return this.awaited.length === 0;
  }

  /** Those that the client waits for. */
  get awaited(): string[] {
    return [...this.#unanswered].filter((call) => !this.#cancelled.has(call));
  }

  /** @returns whether it was one that is not answered yet. */
  answer(call: string): boolean {
    return this.#unanswered.delete(call);
  }

  /** The client waits for this call no longer. @returns whether it did until now. */
  cancel(call: string): boolean {
    if (!this.#unanswered.has(call) || this.#cancelled.has(call)) return false;
    this.#cancelled.add(call);
    return true;
  }

  /** Nobody answers them any more. */
  clear(): void {
    this.#unanswered.clear();
  }

  /** As another process has left them. */
  restore(
    calls: readonly string[],
    { answered, cancelled }: { answered: ReadonlySet<string>; cancelled: ReadonlySet<string> },
  ): void {
    this.clear();
    for (const call of calls) if (!answered.has(call)) this.#unanswered.add(call);
    for (const call of cancelled) this.#cancelled.add(call);
  }
}
