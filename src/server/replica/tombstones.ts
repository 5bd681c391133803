/**
 * The last entries of streams that this broker has removed. Such an entry tells those who follow the log that the stream is
 * no more; after a while all of them know, or will find out by themselves, and it goes as well.
 */

/** How long a removed stream's last entry is kept for those who follow. */
export const TOMBSTONE_MS = 60_000;
/** More are left to the next broker that starts. */
const TOMBSTONES_MAX = 100_000;

export interface Tombstone {
  readonly stream: string;
  readonly at: number;
  readonly atMs: number;
}

export class Tombstones {
  /** In the order in which they came. */
  readonly #kept: Tombstone[] = [];

  add(tombstone: Tombstone): void {
    if (this.#kept.length < TOMBSTONES_MAX) this.#kept.push(tombstone);
  }

  /** Those whose time is over; they are not given again. */
  takeOld(nowMs: number): Tombstone[] {
    const young = this.#kept.findIndex(({ atMs }) => atMs + TOMBSTONE_MS >= nowMs);
    return this.#kept.splice(0, young < 0 ? this.#kept.length : young);
  }
}
