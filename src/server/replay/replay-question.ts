/**
 * Answers an edge that asks for a run from the log. How far the log may be read is looked up at that moment.
 */

import { RequestError } from '../../errors.js';
import type { Logger } from '../../log.js';
import { readPositions } from '../../ring/lifecycle.js';
import type { Rings, StreamHandle } from '../../ring/rings.js';
import type { LogRun } from '../../storage/event-log.js';
import type { LogLine } from '../log/log-line.js';
import type { Questions } from '../messages.js';
import type { ReplayTask } from './replay-worker.js';

export interface ReplaySource {
  readonly rings: Rings;
  readonly line: LogLine;
  readonly read: (stream: StreamHandle, task: ReplayTask) => Promise<LogRun | null>;
  readonly logger: Logger;
}

/**
 * Reads a run for a reader that is below the ring. Null: the event after the cursor is gone.
 * @throws {RequestError} `log_unavailable`
 */
export async function answerReplay(
  { stream, afterSeq, bytesMax }: Questions['replay']['ask'],
  { rings, line, read, logger }: ReplaySource,
): Promise<Questions['replay']['answer']> {
  const logId = line.logIdOf(stream.epoch);
  const positions = readPositions(rings, stream);
  if (logId === undefined || positions === null) return null;
  const { logFloor, committed } = positions;
  const range = { afterSeq, floor: logFloor ?? 1, committed, bytesMax };
  let run: LogRun | null;
  try {
    run = await read(stream, { logId, ...range });
  } catch (err) {
    logger.error({ err, epoch: stream.epoch, afterSeq }, 'cannot read from the log');
    throw new RequestError('log_unavailable');
  }
  if (run === null && isSaidToBeThere(rings, stream, afterSeq + 1)) throw new RequestError('log_unavailable');
  return run;
}

/**
 * Whether a stream's positions say that the log has an event which could not be found there: a commit has dropped it, and
 * the new floor is not announced yet. A refusal now would name a floor that cannot be read (I2); later it names the new one.
 */
function isSaidToBeThere(rings: Rings, stream: StreamHandle, seq: number): boolean {
  const positions = readPositions(rings, stream);
  return positions !== null && seq >= (positions.logFloor ?? 1) && seq <= positions.committed;
}
