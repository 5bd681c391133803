/** What the refusals of JetStream mean for a log, and that it does not answer. */

import { JetStreamApiError } from '@nats-io/jetstream';
import { PermissionViolationError } from '@nats-io/transport-node';
import { LogCorruption, LogError, type LogFault } from '../event-log.js';

/** @throws {LogError} what JetStream refused or did not answer. @throws {LogCorruption} */
export async function attempt<T>(action: () => Promise<T>): Promise<T> {
  const askedAtMs = performance.now();
  try {
    return await action();
  } catch (cause) {
    throw asLogError(cause, askedAtMs);
  }
}

/** A medium that cannot be asked may be asked again; what it holds and should not is another matter. */
export function asLogError(cause: unknown, askedAtMs: number): Error {
  if (cause instanceof LogCorruption || cause instanceof LogError) return cause;
  return new LogError(faultOf(cause), (cause as Error).message, { cause, askedAtMs });
}

function faultOf(cause: unknown): LogFault {
  const refusal = (cause as Error).cause ?? cause;
  if (refusal instanceof PermissionViolationError) return 'broken';
  return cause instanceof JetStreamApiError && isFull(cause) ? 'full' : 'io';
}

/**
 * The servers have no more room, the account may use no more, the stream has reached its limit, or the message is larger than
 * its messages may be: nothing was stored.
 */
function isFull({ code, message }: JetStreamApiError): boolean {
  return FULL_CODES.has(code) || (code === STORE_FAILED && message.includes('maximum'));
}

const FULL_CODES: ReadonlySet<number> = new Set([10002, 10023, 10028, 10047, 10054]);
const STORE_FAILED = 10077;

export function hasCode(error: unknown, code: number): boolean {
  return error instanceof JetStreamApiError && error.code === code;
}
