import type { StreamConfig } from '../../core/retention.js';
import type { LogEntry } from '../../storage/jetstream/log-entry.js';

/**
 * The entry that begins a stream, of which there is no event yet.
 *
 * @param previous position of the newest entry under its name that counts; 0: there is none.
 * @param atMs Unix time, milliseconds.
 */
export function firstEntry(
  config: StreamConfig,
  { epoch, previous, atMs, writer }: Pick<LogEntry, 'epoch' | 'previous' | 'atMs' | 'writer'>,
): LogEntry {
  return {
    epoch,
    origin: epoch,
    config,
    state: 'open',
    count: 0,
    head: 0,
    bytes: 0,
    floor: 1,
    floorBytes: 0,
    floorAt: previous,
    floorAtMs: atMs,
    previous,
    claimsAfter: null,
    joinedAt: 0,
    atMs,
    writer,
    claims: [],
  };
}
