/**
 * The streams that have records of sessions, one for each, and the one that has the secret of their ids. Of each of them
 * the newest event counts.
 */

import { randomBytes } from 'node:crypto';
import { OWN_STREAMS_PREFIX } from '../../core/stream-name.js';

export const SECRET_STREAM = `${OWN_STREAMS_PREFIX}secret`;
const RECORD_PREFIX = `${OWN_STREAMS_PREFIX}session-`;
const SECRET_BYTES = 32;

/** What such a stream is created with, beside its time to live. */
export const KEEPS_NEWEST = { retention: { events: 1, bytes: 0, ageMs: 0 }, overflow: 'evict' } as const;

/** How long a record may wait for its commit, milliseconds. */
export const COMMIT_MS_MAX = 10_000;

/** The stream with the record of a session. @param label of the session. */
export function recordStream(label: string): string {
  return RECORD_PREFIX + label;
}

/** The label of the session whose record a stream has; null: it has none. */
export function labelOfRecord(stream: string): string | null {
  return stream.startsWith(RECORD_PREFIX) ? stream.slice(RECORD_PREFIX.length) : null;
}

/** A new secret, as it is written. */
export function newSecret(): string {
  return randomBytes(SECRET_BYTES).toString('base64url');
}

export function readSecret(written: string): Uint8Array {
  return Buffer.from(written, 'base64url');
}
