/**
 * Which events are old, without a time on each: now and then the head is noted with the time, and everything up
 * to a note that is old enough is old too. Notes are a quarter of the age apart, so an event goes between
 * one and about one and a quarter times the age (contract 2.1 allows twice).
 */

interface Mark {
  readonly seq: number;
  readonly atMs: number;
}

const MARKS_PER_AGE = 4;

export class AgeMarks {
  readonly #ageMs: number;
  /** Oldest first; bounded, for they are a share of the age apart and leave when they are older than it. */
  readonly #marks: Mark[] = [];

  constructor(ageMs: number) {
    this.#ageMs = ageMs;
  }

  /** Notes the head. @returns the newest seq that is now older than the age, or 0. */
  advance(head: number, nowMs: number): number {
    const newest = this.#marks.at(-1);
    if (newest === undefined || (newest.seq < head && nowMs - newest.atMs >= this.#ageMs / MARKS_PER_AGE)) {
      this.#marks.push({ seq: head, atMs: nowMs });
    }
    let old = 0;
    while (this.#marks[0] !== undefined && nowMs - this.#marks[0].atMs >= this.#ageMs) {
      old = (this.#marks.shift() as Mark).seq;
    }
    return old;
  }
}
