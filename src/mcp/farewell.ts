/** What calls are answered when the broker goes down before the server has answered them. */

import { errorText, SESSION_ENDED } from './json-rpc.js';

/** A subscription of MCP 2026-07-28, which ends with a result when its server wants it to. */
const LISTEN = 'subscriptions/listen';

/**
 * The answer to a call that nobody can come back to. If its stream just ended, or its session were gone, today's clients
 * would wait until their own limit.
 * @param id of the call, as JSON.
 */
export function farewell(id: string): string {
  return errorText(id, {
    code: SESSION_ENDED,
    message: 'This server goes down; the call may have been carried out',
    data: { reason: 'draining' },
  });
}

/** The same, of a request of 2026-07-28. */
export function farewellOf(method: string, id: string): string {
  if (method !== LISTEN) return farewell(id);
  const result = `{"resultType":"complete","_meta":{"io.modelcontextprotocol/subscriptionId":${id}}}`;
  return `{"jsonrpc":"2.0","id":${id},"result":${result}}`;
}
