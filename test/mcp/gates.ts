/** Lets a test decide when a tool goes on. */
export class Gates {
  readonly #gates = new Map<string, { promise: Promise<void>; open: () => void }>();

  /** Waits until the gate is opened, by whoever comes first. */
  pass(name: string): Promise<void> {
    return this.#gate(name).promise;
  }

  open(name: string): void {
    this.#gate(name).open();
  }

  #gate(name: string): { promise: Promise<void>; open: () => void } {
    const known = this.#gates.get(name);
    if (known !== undefined) return known;
    let open: () => void = () => undefined;
    const promise = new Promise<void>((resolve) => {
      open = resolve;
    });
    const gate = { promise, open };
    this.#gates.set(name, gate);
    return gate;
  }
}
