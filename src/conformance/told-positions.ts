import type { EpochLog, Known, Report, StreamHistory } from './event-history.js';
import type { PositionsSeen } from './observation.js';

/** What an answer says of a stream, and who asked. */
export interface ToldPositions {
  by: string;
  epoch: string;
  floor?: number | undefined;
  head?: number | undefined;
  /** Where a reader was accepted. */
  after?: number;
}

/**
 * Floors and heads that were told: rule G6, and G4 where a head is below what was acknowledged. An answer has to know
 * what was known to somebody else before its question was sent; what happened in between it may know or not.
 */
export class PositionRules {
  readonly #lastSeen = new Map<string, PositionsSeen>();
  readonly #knownByAsker = new Map<string, ReadonlyMap<string, Known>>();

  ask(by: string, history: StreamHistory): void {
    this.#knownByAsker.set(by, history.known());
  }

  /** Positions that one observer asked for, and asked for before: they rise. */
  compare(now: PositionsSeen, report: Report): void {
    const { observer, stream, epoch, floor, head } = now;
    const key = `${observer} ${stream} ${epoch}`;
    const before = this.#lastSeen.get(key);
    const place = { epoch, seq: head, witness: observer };
    if (before !== undefined && head < before.head) report('G6', `the head was ${before.head}`, place);
    if (before !== undefined && floor < before.floor)
      report('G6', `the floor was ${before.floor}, now ${floor}`, place);
    this.#lastSeen.set(key, now);
  }

  /** Positions in any answer: possible in themselves, and not behind what was known when it was asked for. */
  judge({ by, epoch, floor, head, after }: ToldPositions, log: EpochLog, report: Report): void {
    const known = this.#knownByAsker.get(by)?.get(epoch);
    this.#knownByAsker.delete(by);
    const place = { epoch, seq: head ?? after ?? 0, witness: by };
    if (floor !== undefined && head !== undefined && floor > head + 1)
      report('G6', `the floor ${floor} lies above the head`, place);
    if (head !== undefined && log.endedAt !== null && head > log.endedAt)
      report('G6', `a head of ${head}, but the stream was closed at ${log.endedAt}`, place);
    if (floor !== undefined) log.floorTold = Math.max(log.floorTold, floor);
    if (known === undefined) return;

    const { ackedThrough, seenThrough, floorTold } = known;
    if (head !== undefined && head < ackedThrough)
      report('G4', `${ackedThrough} was acknowledged, the head is said to be ${head}`, place);
    else if (head !== undefined && head < seenThrough)
      report('G6', `${seenThrough} was seen, the head is said to be ${head}`, place);
    if (floor !== undefined && floor < floorTold)
      report('G6', `the floor was ${floorTold}, now ${floor}`, place);
    else if (after !== undefined && after + 1 < floorTold)
      report('G6', `accepted below the floor, which was ${floorTold}`, place);
  }
}
