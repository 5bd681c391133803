/**
 * An append to a log that may be full. Where it has no room even to say what goes from it, that goes first.
 */

import { LogError } from '../../storage/event-log.js';
import type { LogEntry } from '../../storage/jetstream/log-entry.js';
import type { ReplicatedLog } from '../../storage/replicated-log.js';
import type { ReplicaStream } from './replica-stream.js';

/**
 * As `ReplicatedLog.append`. Should this broker die between the two steps, the next one who looks finds the same to be
 * due, or the client who wanted the stream removed asks again.
 * @throws {LogError}
 */
export async function appendWithRoom(
  log: ReplicatedLog,
  { name, at, entry: before }: ReplicaStream,
  { entry, body, after }: { entry: LogEntry; body: Uint8Array; after: number },
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

/** Where the first entry lies that a stream needs: for its events, or for who published. */
export function firstKept({ floorAt, claimsAfter }: LogEntry): number {
  return claimsAfter === null ? floorAt : Math.min(floorAt, claimsAfter + 1);
}
