/** Names are short, and so is the list of them; anything longer is no typing mistake. */
const NAME_LENGTH_MAX = 64;

/**
 * The known name that is most like the given one, or undefined where none is close enough to be what was
 * meant.
 */
export function nearestName(name: string, known: readonly string[]): string | undefined {
  if (name.length > NAME_LENGTH_MAX) return undefined;
  let nearest: string | undefined;
  // A third of the letters may be wrong: `--prot` finds `--port`, and `--xyz` finds nothing.
  let distanceMin = Math.floor(name.length / 3) + 1;
  for (const candidate of known) {
    const distance = editDistance(name, candidate);
    if (distance < distanceMin) {
      distanceMin = distance;
      nearest = candidate;
    }
  }
  return nearest;
}

/**
 * Letters to insert, delete, replace, or swap with their neighbour to get from one text to the other (optimal
 * string alignment). `beforeLast` and `last` are the two rows of the table that the next one depends on.
 */
function editDistance(from: string, to: string): number {
  let beforeLast: number[] = [];
  let last = Array.from({ length: to.length + 1 }, (_, column) => column);
  for (let row = 1; row <= from.length; row++) {
    const next = [row];
    for (let column = 1; column <= to.length; column++) {
      const isSame = from[row - 1] === to[column - 1];
      const isSwapped = from[row - 1] === to[column - 2] && from[row - 2] === to[column - 1];
      next[column] = Math.min(
        cell(last, column) + 1,
        cell(next, column - 1) + 1,
        cell(last, column - 1) + (isSame ? 0 : 1),
        isSwapped ? cell(beforeLast, column - 2) + 1 : Number.POSITIVE_INFINITY,
      );
    }
    beforeLast = last;
    last = next;
  }
  return cell(last, to.length);
}

/** Outside the table nothing can be reached. */
function cell(row: readonly number[], column: number): number {
  return row[column] ?? Number.POSITIVE_INFINITY;
}
