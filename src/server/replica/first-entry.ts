import type { StreamConfig } from '../../core/retention.js';
import type { LogEntry } from '../../storage/jetstream/log-entry.js';
import { following, type Link } from './newest-entry.js';

/**
 * The entry that begins a stream, of which there is no event yet.
 *
 * @param follows the newest entry under its name that counts; null: there is none.
 * @param atMs Unix time, milliseconds.
 */
export function firstEntry(
  config: StreamConfig,
  {
    epoch,
    follows,
    atMs,
    writer,
  }: Pick<LogEntry, 'epoch' | 'atMs' | 'writer'> & { readonly follows: Link | null },
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
    floorAt: follows?.at ?? 0,
    floorAtMs: atMs,
    ...following(follows),
    claimsAfter: null,
    joinedAt: 0,
    atMs,
    writer,
    claims: [],
  };
}
