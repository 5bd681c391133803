import { concatBytes } from '../../core/concat-bytes.js';
import { framesWithin, skipFrames } from '../../core/frame-scan.js';
import type { LogRun, ReadRange } from '../event-log.js';

/**
 * The frames of a range, out of stored runs: as many as fit, but at least one, in memory of their own.
 *
 * @param runs contiguous; the first holds the event after `afterSeq`, or there is none.
 * @returns null when there is no run with a frame that may be shown.
 */
export function collectRun(
  runs: Iterable<LogRun>,
  { afterSeq, committed, bytesMax }: Omit<ReadRange, 'floor'>,
): LogRun | null {
  const parts: Uint8Array[] = [];
  let bytes = 0;
  let lastSeq = afterSeq;
  for (const stored of runs) {
    if (lastSeq >= committed) break;
    const run = cutAfter(stored, committed);
    const { frames } = run;
    const start = skipFrames(frames, lastSeq + 1 - run.firstSeq);
    if (bytes + frames.length - start <= bytesMax) {
      parts.push(start === 0 ? frames : frames.subarray(start));
      bytes += frames.length - start;
      lastSeq = run.lastSeq;
      if (bytes === bytesMax) break;
      continue;
    }
    const { count, end } = framesWithin(frames, start, bytesMax - bytes);
    if (bytes === 0 || end - start <= bytesMax - bytes) {
      parts.push(frames.subarray(start, end));
      bytes += end - start;
      lastSeq += count;
    }
    break;
  }
  if (bytes === 0) return null;
  return { firstSeq: afterSeq + 1, lastSeq, frames: concatBytes(parts) };
}

function cutAfter(run: LogRun, lastSeq: number): LogRun {
  if (run.lastSeq <= lastSeq) return run;
  const end = skipFrames(run.frames, lastSeq - run.firstSeq + 1);
  return { firstSeq: run.firstSeq, lastSeq, frames: run.frames.subarray(0, end) };
}
