/** What is said while the log cannot commit. */

import { RequestError } from '../errors.js';
import { LOG_FULL } from '../ring/log-status.js';

/** Why nothing is appended, created or removed (contract 3.6). @param fault of log-status.ts, not LOG_HEALTHY */
export function logRefusal(fault: number): RequestError {
  const code = fault === LOG_FULL ? 'log_full' : 'log_unavailable';
  return new RequestError(code, undefined, {}, { 'Retry-After': '1' });
}
