/**
 * Where on the bar of a stream its events and its readers are. Pure: from positions to per cents.
 */

/** The seqs that a bar shows, from its left edge to its right one. */
export interface Span {
  readonly from: number;
  readonly to: number;
}

/** Readers that stand at one place of the bar. */
export interface Mark<R> {
  readonly percent: number;
  readonly readers: readonly R[];
}

/** Marks that are closer than this are one. */
const PERCENT_MIN = 1.2;
/** A span has so many events at least, so that one event more does not move everything. */
const EVENTS_MIN = 10;

/** All that is kept, and the place before it, where a reader stands that has nothing of it yet. */
export function spanOfKept(floor: number, head: number): Span {
  return widened({ from: floor - 1, to: head });
}

/** From the reader furthest behind to the head, with a little room before it. */
export function spanOfReaders(seqs: readonly number[], floor: number, head: number): Span {
  const slowest = seqs.reduce((least, seq) => Math.min(least, seq), head);
  const room = Math.ceil((head - slowest) / 20);
  return widened({ from: Math.max(floor - 1, slowest - room), to: head });
}

function widened({ from, to }: Span): Span {
  return { from: Math.max(0, Math.min(from, to - EVENTS_MIN)), to: Math.max(to, EVENTS_MIN) };
}

/** Where a seq is on the bar; what lies outside stands at its edge. */
export function percentOf(seq: number, { from, to }: Span): number {
  const share = (seq - from) / (to - from);
  return Math.min(100, Math.max(0, share * 100));
}

/** One mark for all who stand so close that their marks would cover each other, from left to right. */
export function marksOf<R>(readers: readonly R[], seqOf: (reader: R) => number, span: Span): Mark<R>[] {
  const sorted = [...readers].sort((a, b) => seqOf(a) - seqOf(b));
  const marks: { percent: number; readers: R[] }[] = [];
  for (const reader of sorted) {
    const percent = percentOf(seqOf(reader), span);
    const last = marks.at(-1);
    if (last !== undefined && percent - last.percent < PERCENT_MIN) last.readers.push(reader);
    else marks.push({ percent, readers: [reader] });
  }
  return marks;
}

/** Round seqs to write under the bar, a handful of them. */
export function ticksOf({ from, to }: Span): number[] {
  const rough = (to - from) / 5;
  const power = 10 ** Math.floor(Math.log10(rough));
  const step = Math.max(
    1,
    [1, 2, 5, 10].map((factor) => factor * power).find((size) => size >= rough) ?? rough,
  );
  const ticks: number[] = [];
  for (let seq = Math.ceil(from / step) * step; seq <= to; seq += step) ticks.push(seq);
  return ticks;
}
