/**
 * What an edge is answered that asks for a run from the log: how far the log may be read is looked up at the moment of
 * the question.
 */

import { RequestError } from '../errors.js';
import type { Logger } from '../log.js';
import { readPositions } from '../ring/lifecycle.js';
import type { Rings, StreamHandle } from '../ring/rings.js';
import type { LogRun } from '../storage/event-log.js';
import type { LogLine } from './log-line.js';
import type { Questions } from './messages.js';
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
  try {
    const { logFloor, committed } = positions;
    return await read(stream, { logId, afterSeq, floor: logFloor ?? 1, committed, bytesMax });
  } catch (err) {
    logger.error({ err, epoch: stream.epoch, afterSeq }, 'cannot read from the log');
    throw new RequestError('log_unavailable');
  }
}
