import { ERRORS } from '../errors.js';
import type { GaplessError } from './client-error.js';

/** Whether the same request, sent again unchanged, may succeed later (contract 8). */
export function isRetryable({ code, status }: GaplessError): boolean {
  if (code === 'unreachable') return true;
  if (code in ERRORS) return ERRORS[code as keyof typeof ERRORS].retry;
  // What stands before a broker says so with a status alone.
  return status === 408 || status === 429 || status === 502 || status === 503 || status === 504;
}
