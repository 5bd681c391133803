/**
 * An append to a log that may be full. Where there is no room even for an entry that lets older ones go, those go first.
 */

import { LogError } from '../../storage/event-log.js';
import type { LogEntry } from '../../storage/jetstream/log-entry.js';
import type { ReplicatedLog } from '../../storage/replicated-log.js';
import type { ReplicaStream } from './replica-stream.js';

/**
 * As `ReplicatedLog.append`. Should this broker die between the two steps, another one finds that the same entries have to
 * go, or the client that wanted the stream removed asks again.
 * @throws {LogError}
 */
export async function appendWithRoom(
  log: ReplicatedLog,
  { name, at, entry: before }: ReplicaStream,
  { entry, body, after }: { entry: LogEntry; body: Uint8Array; after: number | null },
): Promise<number | null> {
  try {
    return await log.append(name, entry, body, after);
  } catch (error) {
    const keptFrom = entry.state === 'removed' ? at : firstKept(entry);
    const isFull = error instanceof LogError && error.fault === 'full';
    if (!isFull || keptFrom <= firstKept(before)) throw error;
    await log.dropBelow(name, keptFrom);
    return log.append(name, entry, body, after);
  }
}

/**
 * Where the first entry lies that a stream needs: for its events, or for who published. It is one that counts, so what
 * comes first in the log does so, however much before it is gone.
 */
export function firstKept({ floorAt, claimsAfter }: LogEntry): number {
  return Math.min(floorAt, claimsAfter ?? floorAt);
}
