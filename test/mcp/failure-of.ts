import assert from 'node:assert/strict';
import { messagesOf } from '../support/mcp-client.js';
import type { SseSubscription } from '../support/sse-client.js';

/** The error that a call ended with, and its reason. */
export async function failureOf(
  call: SseSubscription,
): Promise<{ id: unknown; code: unknown; reason: unknown; status: unknown }> {
  assert.equal(await call.untilEnded(), 'end');
  const last = messagesOf(call).at(-1);
  const { reason, status } = last?.error?.data ?? {};
  return { id: last?.id, code: last?.error?.code, reason, status };
}
