import { createHash } from 'node:crypto';
import { GapChecker } from '../support/gap-checker.js';
import type { Observation } from '../support/observation.js';

/**
 * What a simulation adds to the judge of all suites: it knows what it did to the broker, and so which refusals and which
 * new epochs had a cause. And it takes a fingerprint of all that was seen.
 */
export class Judge {
  readonly checker = new GapChecker();
  readonly #hash = createHash('sha256');
  readonly #problems: string[] = [];
  readonly #epochs = new Map<string, Set<string>>();
  /** How often each stream was given a cause to begin anew. */
  readonly #causes = new Map<string, number>();
  readonly #refusedContents = new Map<string, string>();
  readonly #seen = new Set<string>();
  /** The newest seq that anybody was given, by epoch. */
  readonly #seenThrough = new Map<string, number>();
  #acknowledged = 0;

  observe(observation: Observation): void {
    this.#hash.update(JSON.stringify(observation));
    this.checker.observe(observation);
    switch (observation.kind) {
      case 'event':
        this.#event(observation.content, observation.connection);
        this.#seenThrough.set(
          observation.epoch,
          Math.max(observation.seq, this.#seenThrough.get(observation.epoch) ?? 0),
        );
        break;
      case 'publish-acked':
        this.#acknowledged++;
        break;
      case 'connected':
      case 'positions':
        this.#epoch(observation.stream, observation.epoch);
        break;
      case 'refused':
        if (observation.epoch !== null) this.#epoch(observation.stream, observation.epoch);
    }
  }

  /** Publishes that were acknowledged so far. What was asked before the newest of them may not show it. */
  get acknowledged(): number {
    return this.#acknowledged;
  }

  /**
   * A stream's position was asked for.
   * @returns to be called with the answer: what readers had by then was committed (I4).
   */
  positionAsked(): (stream: string, epoch: string, committed: number) => void {
    const seen = new Map(this.#seenThrough);
    return (stream, epoch, committed) => {
      const had = seen.get(epoch) ?? 0;
      if (committed < had)
        this.problem(`${stream} ${epoch}: ${had} had been read, but ${committed} is committed`);
    };
  }

  /** Something is wrong that no rule of the checker is about. */
  problem(what: string): void {
    this.#problems.push(what);
  }

  /** The stream may have begun anew, once more than it had. */
  mayBeginAnew(stream: string): void {
    this.#causes.set(stream, (this.#causes.get(stream) ?? 0) + 1);
  }

  /** A publish was refused, which means that nothing was changed (contract 8). */
  publishRefused(contents: readonly string[], answer: string): void {
    this.#hash.update(answer);
    for (const content of contents) {
      this.#refusedContents.set(content, answer);
      if (this.#seen.has(content)) this.problem(`refused (${answer}), but it had been read: ${content}`);
    }
  }

  /** All that is wrong, one line each. */
  get verdicts(): string[] {
    const violations = this.checker.violations.map(
      ({ rule, what, stream, epoch, seq, witness }) =>
        `${rule} ${what} (${stream} ${epoch}.${seq}, ${witness})`,
    );
    return [...violations, ...this.#problems];
  }

  /** Two runs that saw the same in the same order have the same. */
  fingerprint(): string {
    return this.#hash.copy().digest('hex').slice(0, 16);
  }

  #event(content: string, witness: string): void {
    this.#seen.add(content);
    const answer = this.#refusedContents.get(content);
    if (answer !== undefined) this.problem(`refused (${answer}), but ${witness} has read it: ${content}`);
  }

  #epoch(stream: string, epoch: string): void {
    let epochs = this.#epochs.get(stream);
    if (epochs === undefined) this.#epochs.set(stream, (epochs = new Set()));
    if (epochs.has(epoch)) return;
    epochs.add(epoch);
    const causes = this.#causes.get(stream) ?? 0;
    if (epochs.size > 1 + causes) this.problem(`${stream} began anew as ${epoch} without a cause`);
  }
}
