/**
 * Finds entries of a stream in a replicated log by what they say. Nothing is kept about where events lie: what entries
 * say of where they begin only goes up from one to the next, so a search takes some twenty reads, and a reader who goes
 * on where the last read ended takes one.
 *
 * An entry that does not count begins where the one begins that was first in its place, and lies after that, perhaps by
 * far: what is looked for may lie before it although it seems to lie behind, never the other way round.
 */

import type { ReplicatedLog, StoredEntry } from '../../storage/replicated-log.js';
import { followsOther, isOther } from './contradiction.js';
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
  { name, entry: { floorAt }, epoch, at }: ReplicaStream,
  holds: (start: EntryStart) => boolean,
): Promise<StoredEntry | null> {
  let low = Math.max(1, floorAt);
  let high = at;
  let found: StoredEntry | null = null;
  const isFound = (stored: StoredEntry): boolean =>
    stored.entry.epoch === epoch && holds(startOfEntry(stored));
  while (low <= high) {
    const middle = low + Math.floor((high - low) / 2);
    let stored = await log.next(name, middle);
    while (isIn(stored, high) && !isFound(stored) && !(await counts(log, stored, floorAt))) {
      stored = await log.next(name, stored.at + 1);
    }
    if (!isIn(stored, high)) {
      high = middle - 1;
    } else if (isFound(stored)) {
      found = stored;
      high = middle - 1;
    } else {
      low = stored.at + 1;
    }
  }
  return found;
}

function isIn(stored: StoredEntry | null, high: number): stored is StoredEntry {
  return stored !== null && stored.at <= high;
}

/** Whether an entry counts, of those from the floor on: if it is the first that follows the one before it. */
async function counts(
  log: ReplicatedLog,
  { stream, at, entry }: StoredEntry,
  floorAt: number,
): Promise<boolean> {
  const { previous } = entry;
  if (at === floorAt) return true;
  // What was the first to follow that one lies at the floor, or below.
  if (previous < floorAt) return false;
  for (let from = previous + 1; ; ) {
    const other = await log.next(stream, from);
    if (other === null || other.at >= at) return true;
    // As soon as one names a later one, the place was taken.
    if (other.entry.previous >= previous) return false;
    from = other.at + 1;
  }
}

/** The entry that has an event; null: it is not in the log. @throws {LogError} */
export async function findEvent(
  log: ReplicatedLog,
  stream: ReplicaStream,
  seq: number,
): Promise<StoredEntry | null> {
  const found = await findLastBefore(log, stream, ({ afterSeq }) => afterSeq >= seq);
  return found !== null && hasEvent(found, stream, seq) ? found : null;
}

export function hasEvent({ entry }: StoredEntry, { epoch }: ReplicaStream, seq: number): boolean {
  return entry.epoch === epoch && seq <= entry.head && seq > entry.head - entry.count;
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
  if (stored?.at !== at) return null;
  const isContradicted = beyond === null ? isOther(stored, stream) : followsOther(beyond, stored);
  if (isContradicted) throw stream.contradicted();
  return stored;
}
