/**
 * The entries that a writer appends. Each follows the newest of its stream that counts, and says where the stream stands
 * after it.
 */

import type { EntryClaim, LogEntry } from '../../storage/jetstream/log-entry.js';
import { following } from './newest-entry.js';
import type { ReplicaStream } from './replica-stream.js';

/** Who writes an entry, and when: Unix time in milliseconds. */
export interface Written {
  readonly writer: string;
  readonly nowMs: number;
}

interface Events {
  readonly count: number;
  /** Of their frames, without ids. */
  readonly bytes: number;
  readonly claims: readonly EntryClaim[];
  readonly claimsAfter: LogEntry['claimsAfter'];
}

export function entryOfEvents(stream: ReplicaStream, events: Events, written: Written): LogEntry {
  const { entry: before, at } = stream;
  const { count, bytes, claims, claimsAfter } = events;
  const places = placesAfter(stream, written);
  const isEmpty = before.head < before.floor;
  return {
    ...before,
    ...places,
    count,
    head: before.head + count,
    bytes: before.bytes + bytes,
    ...(isEmpty ? { floorAtMs: places.atMs, floorAt: at } : {}),
    claimsAfter,
    claims: [...claims],
  };
}

/** @param changed the newest entry as it is to be. */
export function entryOfChange(stream: ReplicaStream, changed: LogEntry, written: Written): LogEntry {
  return { ...changed, ...placesAfter(stream, written), count: 0, claims: [] };
}

/** Times go up within a stream, whoever's clock says them. */
function placesAfter(stream: ReplicaStream, { writer, nowMs }: Written) {
  return { ...following(stream), atMs: Math.max(stream.entry.atMs, nowMs), writer };
}
