/**
 * The last entries of streams that this broker has removed. Such an entry tells those who follow the log that the stream is
 * no more; after a while all of them know, or will find out by themselves, and it goes as well.
 */

import type { ReplicatedLog } from '../../storage/replicated-log.js';
import type { Replica } from './replica.js';

/** How long a removed stream's last entry is kept for those who follow. */
export const TOMBSTONE_MS = 60_000;
/** More are left to the next broker that starts. */
const TOMBSTONES_MAX = 100_000;

export interface Tombstone {
  readonly stream: string;
  readonly atMs: number;
}

export class Tombstones {
  /** In the order in which they came. */
  readonly #kept: Tombstone[] = [];

  add(tombstone: Tombstone): void {
    if (this.#kept.length < TOMBSTONES_MAX) this.#kept.push(tombstone);
  }

  /** Those whose time is over; they are not given again. */
  takeOld(nowMs: number): string[] {
    const young = this.#kept.findIndex(({ atMs }) => atMs + TOMBSTONE_MS >= nowMs);
    return this.#kept.splice(0, young < 0 ? this.#kept.length : young).map(({ stream }) => stream);
  }
}

/**
 * Has a removed stream go from the log if its time is over, and with it all that came after its last entry and does not
 * count: left there alone, that would seem to. Does nothing where another stream has its name by now.
 *
 * @throws {LogError}
 */
export async function dropRemoved(
  log: ReplicatedLog,
  replica: Pick<Replica, 'newest'>,
  { stream, nowMs }: { stream: string; nowMs: number },
): Promise<void> {
  const newest = await replica.newest(stream);
  if (newest === null) return;
  const { state, atMs } = newest.stored.entry;
  if (state !== 'removed' || atMs + TOMBSTONE_MS >= nowMs) return;
  await log.dropBelow(stream, newest.tailAt + 1);
  await log.subscribers.dropBelow(stream, null, newest.tailAt);
}
