import { RequestError } from '../errors.js';

/** Longest event type, in bytes of UTF-8 (contract 3.2). */
export const TYPE_BYTES_MAX = 128;

/** A UTF-16 unit takes at most 3 bytes of UTF-8, so a text up to this length needs no counting. */
const UNITS_SURELY_SHORT = Math.floor(TYPE_BYTES_MAX / 3);

/** What the server itself says on a stream (contract 3.2, 4.5, 4.7). */
const RESERVED: ReadonlySet<string> = new Set(['resume_unavailable', 'stream_closed', 'stream_deleted']);

/** Characters that would end the `event` line, or that readers cut a field at. */
const FORBIDDEN = /[\r\n\0]/;

/**
 * Checks an event type (contract 3.2). The empty type and `message` are valid: both mean an untyped event.
 *
 * @throws {RequestError} `invalid_event_type` or `reserved_type`.
 */
export function checkEventType(type: string): void {
  if (FORBIDDEN.test(type)) throw new RequestError('invalid_event_type', 'the type has a CR, LF or NUL');
  if (!type.isWellFormed()) throw new RequestError('invalid_event_type', 'the type is not Unicode text');
  if (type.length > UNITS_SURELY_SHORT && exceedsBytes(type, TYPE_BYTES_MAX)) {
    throw new RequestError('invalid_event_type', `the type is longer than ${TYPE_BYTES_MAX} bytes`);
  }
  if (RESERVED.has(type)) throw new RequestError('reserved_type', `"${type}" is said by the server only`);
}

/** Whether there can be events of this type; one that names nothing need not be kept in a filter (contract 4.9). */
export function isEventType(type: string): boolean {
  return !FORBIDDEN.test(type) && type.isWellFormed() && !exceedsBytes(type, TYPE_BYTES_MAX);
}

/** Whether well-formed text takes more than `bytesMax` bytes of UTF-8; looks no further than it must. */
function exceedsBytes(text: string, bytesMax: number): boolean {
  let bytes = 0;
  for (let i = 0; i < text.length && bytes <= bytesMax; i++) {
    const unit = text.charCodeAt(i);
    if (unit < 0x80) bytes += 1;
    else if (unit < 0x800) bytes += 2;
    else if (unit < 0xd800 || unit > 0xdfff) bytes += 3;
    else bytes += 2; // Half of a surrogate pair, which takes 4 bytes together.
  }
  return bytes > bytesMax;
}
