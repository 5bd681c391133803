/**
 * Which entry of a chain in a replicated log is the newest that counts. Who wrote an entry had taken up the one that it
 * names as the one before, so that one counts; the newest is the first to follow the farthest of all that are named.
 *
 * The last one in the log need not name that: an append may come in long after its place was taken, when nothing is left
 * there any more, neither the one that it names nor the one that took the place.
 */

import { LogError } from '../../storage/event-log.js';

/** An entry where it lies, and the one that it names as the one before. */
export interface Link {
  readonly at: number;
  readonly entry: { readonly previous: number; readonly previousWriter: string; readonly writer: string };
}

/** Where a chain goes on: what a new entry says of the newest that counts. */
export function following(newest: Link | null | undefined): { previous: number; previousWriter: string } {
  return { previous: newest?.at ?? 0, previousWriter: newest?.entry.writer ?? '' };
}

/** The entries of one stream, or of one named subscriber. */
export interface Chain<L extends Link> {
  newest(): Promise<L | null>;
  next(from: number): Promise<L | null>;
}

/** How often all that is read may go meanwhile. */
const TRIES_MAX = 5;

/**
 * The newest entry that counts, and where the newest of all lies. Null: there is none. What goes from the log while it is
 * read goes with all before it.
 * @throws {LogError}
 */
export async function findNewest<L extends Link>(
  chain: Chain<L>,
): Promise<{ stored: L; tailAt: number } | null> {
  for (let tries = 0; tries < TRIES_MAX; tries++) {
    const newest = await chain.newest();
    if (newest === null) return null;
    let { previous } = newest.entry;
    let stored: L | null = null;
    // Where positions are given again, the one that it names may have lain later.
    let tailAt = Math.min(previous, newest.at - 1);
    // Those that others append meanwhile are not waited for.
    while (tailAt < newest.at) {
      const next = await chain.next(tailAt + 1);
      if (next === null) break;
      tailAt = next.at;
      const named = next.entry.previous;
      // What follows nothing was written when all before had gone, and what names that came too late; or it came too late itself.
      const beginsAnew = stored === null && named === 0 && (await hasGone(chain, previous, next));
      const counts = beginsAnew || (stored === null ? named >= previous : named > previous);
      if (!counts) continue;
      stored = next;
      previous = beginsAnew ? next.at - 1 : named;
    }
    // The newest would count, were there no other.
    if (stored !== null) return { stored, tailAt: Math.max(tailAt, newest.at) };
  }
  throw new LogError('io', 'entries go from the log faster than they are read');
}

/** Whether a position has no entry any more where another one still has: both may have gone at once. */
async function hasGone<L extends Link>(chain: Chain<L>, at: number, before: L): Promise<boolean> {
  const first = await chain.next(Math.max(1, at));
  return first !== null && first.at !== at && first.at <= before.at;
}
