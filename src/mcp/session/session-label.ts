/** What log lines call a session, and what it is kept by: whoever knows its id can use it. */

import { createHash } from 'node:crypto';

/** Enough that no two are the same. */
const LABEL_LENGTH = 16;

export function labelOf(id: string): string {
  return createHash('sha256').update(id).digest('base64url').slice(0, LABEL_LENGTH);
}
