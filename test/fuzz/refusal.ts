import assert from 'node:assert/strict';
import { ERRORS, RequestError } from '#gapless/errors.js';

/** The code with which something is refused, of the table and the client's fault; null if it is taken. */
export function refusal(attempt: () => unknown): string | null {
  try {
    attempt();
    return null;
  } catch (error) {
    // Any other error is a fault of ours.
    if (!(error instanceof RequestError)) throw error;
    assert.ok(error.code in ERRORS, `${error.code} is not in the table`);
    assert.ok(error.status >= 400 && error.status < 500, `${error.code} is ${error.status}`);
    JSON.stringify(error.problem());
    return error.code;
  }
}
