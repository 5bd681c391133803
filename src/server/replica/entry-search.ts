/**
 * Finds entries of a stream in a replicated log by what they say. Nothing is kept about where events lie: what entries
 * say of where they begin only goes up from one to the next, so a search takes some twenty reads, and a reader who goes
 * on where the last read ended takes one.
 *
 * Entries that do not count do no harm to it: such a one begins where the one began that was first in its place, and
 * lies before the next that counts.
 */

import type { ReplicatedLog, StoredEntry } from '../../storage/replicated-log.js';
import type { ReplicaStream } from './replica-stream.js';

/** Where an entry begins: seq of the event before it, bytes of parts before it, and when it was written. */
export interface EntryStart {
  readonly afterSeq: number;
  readonly bytes: number;
  readonly atMs: number;
}

export function startOfEntry({ entry, body }: StoredEntry): EntryStart {
  const { head, count, bytes, atMs } = entry;
  return { afterSeq: head - count, bytes: bytes - (body.length - 4 * count), atMs };
}

/**
 * The first entry, of those that may be read, with a start that a condition holds for; it has to hold for all after it
 * as well. It may be one that does not count. Null: for none.
 *
 * @throws {LogError}
 */
export async function findFirst(
  log: ReplicatedLog,
  { name, entry, epoch, at }: ReplicaStream,
  holds: (start: EntryStart) => boolean,
): Promise<StoredEntry | null> {
  let low = Math.max(1, entry.floorAt);
  let high = at;
  let found: StoredEntry | null = null;
  while (low <= high) {
    const middle = low + Math.floor((high - low) / 2);
    const stored = await log.next(name, middle);
    if (stored === null || stored.at > high) {
      high = middle - 1;
    } else if (stored.entry.epoch === epoch && holds(startOfEntry(stored))) {
      found = stored;
      high = middle - 1;
    } else {
      low = stored.at + 1;
    }
  }
  return found;
}

/**
 * The last entry that counts before those with a start that a condition holds for. Null: it is not there any more.
 *
 * @throws {LogError}
 */
export async function findLastBefore(
  log: ReplicatedLog,
  stream: ReplicaStream,
  holds: (start: EntryStart) => boolean,
): Promise<StoredEntry | null> {
  const { at: newestAt, name } = stream;
  const beyond = await findFirst(log, stream, holds);
  // The one that an entry follows counts.
  const at = beyond === null ? newestAt : beyond.entry.previous;
  const stored = await log.next(name, at);
  return stored?.at === at ? stored : null;
}
