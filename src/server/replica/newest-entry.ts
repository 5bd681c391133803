/**
 * Which entry of a chain in a replicated log is the newest that counts. Who wrote an entry had taken up the one that it
 * names as the one before, so that one counts; the newest is the first to follow the farthest of all that are named.
 *
 * The last one in the log need not name that: an append may come in long after its place was taken, when nothing is left
 * there any more, neither the one that it names nor the one that took the place.
 */

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

/**
 * The newest entry that counts, and where the newest of all lies. Null: there is none.
 * @throws {LogError}
 */
export async function findNewest<L extends Link>(
  chain: Chain<L>,
): Promise<{ stored: L; tailAt: number } | null> {
  const newest = await chain.newest();
  if (newest === null) return null;
  let { previous } = newest.entry;
  let stored: L | null = null;
  let tailAt = previous;
  // Those that others append meanwhile are not waited for.
  while (tailAt < newest.at) {
    const next = await chain.next(tailAt + 1);
    if (next === null) break;
    tailAt = next.at;
    const named = next.entry.previous;
    // What follows nothing was written when all before had gone, and what names that came too late; or it came too late itself.
    const beginsAnew = stored === null && named === 0 && !(await isThere(chain, previous));
    const isFirst = beginsAnew || (stored === null ? named >= previous : named > previous);
    if (!isFirst) continue;
    stored = next;
    previous = beginsAnew ? next.at - 1 : named;
  }
  return { stored: stored ?? newest, tailAt: Math.max(tailAt, newest.at) };
}

async function isThere<L extends Link>(chain: Chain<L>, at: number): Promise<boolean> {
  return at > 0 && (await chain.next(at))?.at === at;
}
