/**
 * A cursor that the server keeps for a subscription by prefix (contract 4.11): what its last two connections were sent.
 *
 * Each connection counts on from the last, so that an id names one position for ever, also where the subscriber came back
 * with an older one than the newest. Two of them, for a connection may break before the peer has seen an id of it, and then
 * it comes back with one of the connection before.
 */

import { type SentData, SentHistory, type SentPosition } from './sent-history.js';

export interface KeptCursor {
  /** The newest last. */
  readonly histories: readonly SentData[];
}

/** Where the subscriber was after an id, by the names of the streams; null when that is not known any more. */
export function positionsAt(
  { histories }: KeptCursor,
  count: number,
): ReadonlyMap<string, SentPosition> | null {
  for (const data of histories) {
    const positions = new SentHistory(data).at(count);
    if (positions !== null) return positions;
  }
  return null;
}

/** How a subscription goes on: the connection that it comes back from, null where there was none, and a new one. */
export function beginConnection(
  kept: KeptCursor | null,
  count: number,
  positions: ReadonlyMap<string, SentPosition>,
): { cursor: KeptCursor; history: SentHistory } {
  const before = kept?.histories.find((data) => data.baseCount <= count && count <= data.count);
  const newest = kept?.histories.at(-1)?.count ?? 0;
  const history = SentHistory.begin(newest + 1, positions);
  const histories = before === undefined ? [history.data] : [before, history.data];
  return { cursor: { histories }, history };
}
