import type { StreamConfig } from '../../core/retention.js';
import type { LogEntry } from '../../storage/jetstream/log-entry.js';
import type { StoredEntry } from '../../storage/replicated-log.js';

/**
 * The entry that begins a stream, of which there is no event yet.
 *
 * @param follows the newest entry under its name that counts; null: there is none.
 * @param atMs Unix time, milliseconds.
 */
export function firstEntry(
  config: StreamConfig,
  {
    follows,
    epoch,
    atMs,
    writer,
  }: { readonly follows: StoredEntry | null } & Pick<LogEntry, 'epoch' | 'atMs' | 'writer'>,
): LogEntry {
  const previous = follows?.at ?? 0;
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
    previousWriter: follows?.entry.writer ?? '',
    claimsAfter: null,
    joinedAt: 0,
    atMs,
    writer,
    claims: [],
  };
}
