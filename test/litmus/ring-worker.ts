import { parentPort, workerData } from 'node:worker_threads';
import { FrameBatch } from '#gapless/core/sse-frame.js';
import {
  ANY_HEAD,
  APPEND_GONE,
  APPEND_NO_MEMORY,
  APPEND_UNCOMMITTED,
  APPENDED,
  Appender,
} from '#gapless/ring/append.js';
import * as layout from '#gapless/ring/layout.js';
import { closeLogged, commitStream, readPositions } from '#gapless/ring/lifecycle.js';
import { READ_CAUGHT_UP, READ_GONE, READ_OK, READ_OVERTAKEN, RingReader } from '#gapless/ring/read.js';
import { i32At, Rings, type StreamHandle } from '#gapless/ring/rings.js';
import { Prng } from '../support/prng.js';
import { judgeRun, markedText } from './marked-event.js';
import { marksOf, type RingOrder, type RingReport, type RingWorkerData, STREAMS } from './ring-round.js';
import { startTogether } from './start-together.js';
import { StretchedRun } from './stretched-run.js';
import { UnconfirmedReader } from './unconfirmed-reader.js';

const { role, index, workers, rings: buffers, start, ledgers, seen } = workerData as RingWorkerData;
const rings = new Rings(buffers);
const nothing = new Int32Array(1);
const appender = new Appender(rings);
const batch = new FrameBatch(1 << 20);
const reader =
  role === 'reader' ? new RingReader(rings) : new UnconfirmedReader(rings, role === 'floor-only reader');
const run = new StretchedRun(1 << 14);

/** Marks of this appender begin here; below 2^31 with the round's events added. */
const MARKS_PER_WORKER = 1 << 24;
/** A few tens of microseconds; and now and then as long as a ring takes to grow, or a stream to be replaced. */
const COPY_PAUSE_STEPS_MAX = 3000;
const LONG_PAUSE_STEPS = 50_000;
const LONG_PAUSE_SHARE = 0.03;
/** A stream that is left alone for some twenty batches idles. */
const BATCH_MS = 50;
const REFUSALS: ReadonlySet<number> = new Set([APPEND_NO_MEMORY, APPEND_UNCOMMITTED, APPEND_GONE]);
const READ_BYTES_MAX = [1, 300, 2000, 1 << 14] as const;

parentPort?.on('message', (order: RingOrder) => {
  startTogether(start, workers * order.round);
  const prng = new Prng(order.seed + index);
  const act = role === 'appender' ? append : role === 'committer' ? commit : read;
  parentPort?.postMessage(act(order, prng));
});

function append({ streams, batches }: RingOrder, prng: Prng): RingReport {
  const events = [0, 0];
  let mark = index * MARKS_PER_WORKER;
  for (let done = 0; done < batches; done++) {
    if (done === batches >> 1) parentPort?.postMessage({ kind: 'half' } satisfies RingReport);
    const which = prng.chance(0.2) ? 1 : 0;
    const count = prng.between(1, 4);
    batch.reset();
    for (let i = 1; i <= count; i++) {
      const text = markedText(mark + i);
      batch.pushText(text, 0, text.length, null);
    }
    const outcome = appender.append(streams[which] as StreamHandle, batch, BATCH_MS * done, ANY_HEAD);
    if (REFUSALS.has(outcome)) continue;
    if (outcome !== APPENDED)
      return { kind: 'appended', events, reclaimed: appender.reclaimed, problem: `append said ${outcome}` };
    const problem = enter(which, appender.firstSeq, mark, count);
    if (problem !== null) return { kind: 'appended', events, reclaimed: appender.reclaimed, problem };
    mark += count;
    events[which] = (events[which] as number) + count;
  }
  return { kind: 'appended', events, reclaimed: appender.reclaimed, problem: null };
}

/** Stands in for the log thread: commits what there is, until the streams are closed. */
function commit({ streams }: RingOrder, prng: Prng): RingReport {
  const open = new Set(streams);
  while (open.size > 0) {
    for (const stream of open) {
      // Before the head: nothing is appended after it.
      const closing = rings.i32[i32At(stream.slot, layout.STATE_OFFSET)] === layout.STREAM_CLOSING;
      const at = readPositions(rings, stream);
      if (at === null) return { kind: 'read', ...NOTHING_READ, problem: 'a stream is gone' };
      if (at.head > at.committed) commitStream(rings, stream, { seq: at.head, logFloorSeq: 1 });
      else if (closing) {
        closeLogged(rings, stream);
        open.delete(stream);
      }
    }
    idle(pauseSteps(prng));
  }
  return { kind: 'read', ...NOTHING_READ, problem: null };
}

/** Claims the seqs in the ledger: nobody else may have been given them. */
function enter(which: number, firstSeq: number, mark: number, count: number): string | null {
  const marks = marksOf(ledgers, which);
  for (let i = 0; i < count; i++) {
    const before = Atomics.compareExchange(marks, firstSeq + i, 0, mark + 1 + i);
    if (before !== 0) return `seq ${firstSeq + i} was given to both ${before} and ${mark + 1 + i}`;
  }
  return null;
}

function pauseSteps(prng: Prng): number {
  if (prng.chance(LONG_PAUSE_SHARE)) return LONG_PAUSE_STEPS;
  return prng.chance(0.5) ? 0 : prng.below(COPY_PAUSE_STEPS_MAX);
}

const NOTHING_READ = { accepted: 0, discarded: 0, overtaken: 0 };

/** Passes a little time without giving the processor away. */
function idle(steps: number): void {
  for (let i = 0; i < steps; i++) Atomics.load(nothing, 0);
}

/** One reader's way through one stream. */
interface Way {
  readonly which: number;
  readonly stream: StreamHandle;
  readonly marks: Int32Array;
  cursor: number;
  floor: number;
  committed: number;
  over: boolean;
}

function read({ streams }: RingOrder, prng: Prng): RingReport {
  const ways = streams.map(
    (stream, which): Way => ({
      which,
      stream,
      marks: marksOf(seen, which),
      cursor: 0,
      floor: 0,
      committed: 0,
      over: false,
    }),
  );
  const counts = { accepted: 0, overtaken: 0 };
  run.pause = () => idle(pauseSteps(prng));
  const discardedBefore = reader.discarded;
  let problem: string | null = null;
  while (problem === null && ways.some(({ over }) => !over)) {
    const way = ways[prng.below(STREAMS)] as Way;
    if (!way.over) problem = step(way, prng, counts);
  }
  return { kind: 'read', ...counts, discarded: reader.discarded - discardedBefore, problem };
}

/** One read, judged. @returns what was wrong with it. */
function step(way: Way, prng: Prng, counts: { accepted: number; overtaken: number }): string | null {
  const { stream } = way;
  const found = reader.read(stream, way.cursor, prng.pick(READ_BYTES_MAX), run);
  if (found === READ_GONE) {
    way.over = true;
    return null;
  }
  const { floorSeq, committedSeq } = reader;
  if (floorSeq < way.floor || committedSeq < way.committed) return `I9: positions of ${way.which} went back`;
  way.floor = floorSeq;
  way.committed = committedSeq;
  if (found === READ_OK) {
    const { firstSeq, lastSeq, frames } = run;
    const range = { epoch: stream.epoch, firstSeq, lastSeq };
    if (firstSeq !== way.cursor + 1) return `I1: ${firstSeq} came after ${way.cursor}`;
    let problem: string | null = null;
    const wrong = judgeRun(frames, range, (seq, mark) => {
      const before = way.marks[seq] as number;
      if (before !== 0 && before !== mark) problem = `I3: ${seq} was ${before} and is ${mark}`;
      way.marks[seq] = mark;
    });
    if (wrong !== null || problem !== null) return wrong ?? problem;
    counts.accepted += lastSeq - firstSeq + 1;
    // Half of the time it stays with the oldest events, which are about to be overwritten.
    way.cursor = prng.chance(0.5) ? lastSeq : Math.max(floorSeq - 1, 0);
    return null;
  }
  if (found === READ_OVERTAKEN) {
    counts.overtaken++;
    const at = readPositions(rings, stream);
    if (floorSeq <= way.cursor + 1) return `overtaken at ${way.cursor} although the floor is ${floorSeq}`;
    if (at !== null && at.floor < floorSeq) return `I9: the floor went back from ${floorSeq} to ${at.floor}`;
    way.cursor = floorSeq - 1;
    return null;
  }
  if (found !== READ_CAUGHT_UP || way.cursor !== committedSeq) return `read said ${found} at ${way.cursor}`;
  way.over = reader.closed;
  way.cursor = Math.max(floorSeq - 1, 0);
  return null;
}
