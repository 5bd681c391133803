import type { Target } from './target.js';

/** One thing that the contract says, tried. */
export interface Check {
  /** The section that says it, such as `4.4`. */
  readonly section: string;
  /** What is so if the check passes. */
  readonly what: string;
  /**
   * @throws {Mismatch} when it is not so.
   * @throws {Skipped} when this server cannot be asked.
   */
  readonly run: (target: Target) => Promise<void>;
}

/** A section of the contract with its checks. */
export interface Section {
  readonly number: string;
  readonly title: string;
  readonly checks: readonly Check[];
}

/** Numbers from `first` to `last`, for the seqs and contents of a check. */
export function range(first: number, last: number): number[] {
  return Array.from({ length: Math.max(0, last - first + 1) }, (_unused, index) => first + index);
}
