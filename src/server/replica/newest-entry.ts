/**
 * Which entry of a chain in a replicated log is the newest that counts: of those that name the same one as the one
 * before, the first in the log does.
 */

interface Link {
  readonly at: number;
  readonly entry: { readonly previous: number };
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
  // Who wrote it had taken up the one that it follows, so that one counts. Is it the first that follows it?
  let counted = newest.entry.previous;
  let stored = newest;
  let tailAt = newest.at;
  for (let next = await chain.next(counted + 1); next !== null; next = await chain.next(tailAt + 1)) {
    tailAt = next.at;
    if (next.entry.previous !== counted) continue;
    stored = next;
    counted = next.at;
  }
  return { stored, tailAt };
}
