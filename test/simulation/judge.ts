import { createHash } from 'node:crypto';
import type { Observation } from '#gapless/conformance/observation.js';
import { GapChecker } from '../support/gap-checker.js';

/**
 * What a simulation adds to the judge of all suites: it knows what it did to the broker, and so which new epochs had a
 * cause. And it takes a fingerprint of all that was seen.
 */
export class Judge {
  readonly checker = new GapChecker();
  readonly #hash = createHash('sha256');
  readonly #problems: string[] = [];
  readonly #epochs = new Map<string, Set<string>>();
  /** How often each stream was given a cause to begin anew. */
  readonly #causes = new Map<string, number>();

  observe(observation: Observation): void {
    this.#hash.update(JSON.stringify(observation));
    this.checker.observe(observation);
    switch (observation.kind) {
      case 'connected':
      case 'positions':
        this.#epoch(observation.stream, observation.epoch);
        break;
      case 'refused':
        if (observation.epoch !== null) this.#epoch(observation.stream, observation.epoch);
    }
  }

  /** Something is wrong that no rule of the checker is about. */
  problem(what: string): void {
    this.#problems.push(what);
  }

  /** The stream may begin anew, once more than it might before. */
  mayBeginAnew(stream: string): void {
    this.#causes.set(stream, (this.#causes.get(stream) ?? 0) + 1);
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

  #epoch(stream: string, epoch: string): void {
    let epochs = this.#epochs.get(stream);
    if (epochs === undefined) {
      epochs = new Set();
      this.#epochs.set(stream, epochs);
    }
    epochs.add(epoch);
    const causes = this.#causes.get(stream) ?? 0;
    if (epochs.size > 1 + causes) this.problem(`${stream} began anew as ${epoch} without a cause`);
  }
}
