/** What clients are told when the messages that they missed cannot be had. */

import { ResumeUnavailableError, StreamDeletedError } from '../client/client.js';
import type { JsonRpcId, JsonRpcMessage } from './sdk-shapes.js';

/** Codes of JSON-RPC errors, in the range that MCP leaves to implementations. */
const CALL_LOST = -32016;
const HISTORY_GONE = -32017;

export interface Gap {
  readonly code: number;
  readonly message: string;
  readonly data: Readonly<Record<string, unknown>>;
}

/** The process that served a call has ended without a response. */
export const LOST_CALL: Gap = {
  code: CALL_LOST,
  message: 'The server process that served this call has ended: its result will not come',
  data: { reason: 'process_ended' },
};

/** Null for an error that says nothing about the messages, such as a broker that cannot be reached. */
export function gapOf(error: unknown): Gap | null {
  if (error instanceof ResumeUnavailableError) {
    const { reason, floor, head } = error;
    return historyGone({ reason, floor, head });
  }
  if (error instanceof StreamDeletedError) return historyGone({ reason: 'deleted' });
  return null;
}

/** The only word that makes a waiting caller stop at once: an error with the id of its own request. */
export function endOfCall(id: JsonRpcId, { code, message, data }: Gap): JsonRpcMessage {
  return { jsonrpc: '2.0', id, error: { code, message, data } };
}

/** For the stream that nobody waits on: a warning, and whatever makes a client fetch what it has again. */
export function missedChanges({ message, data }: Gap): JsonRpcMessage[] {
  const warning = { level: 'warning', logger: 'gapless', data: { message, ...data } };
  return [
    { jsonrpc: '2.0', method: 'notifications/message', params: warning },
    ...['tools', 'prompts', 'resources'].map((kind) => ({
      jsonrpc: '2.0',
      method: `notifications/${kind}/list_changed`,
    })),
  ];
}

/**
 * Sent where there is nothing to send. Clients leave it alone, as they do with every notification that they do not know;
 * but one that got no id on a connection forgets where it was when that breaks too.
 */
export function positionMark(): JsonRpcMessage {
  return { jsonrpc: '2.0', method: 'notifications/gapless/position' };
}

function historyGone(data: Gap['data']): Gap {
  const message = 'Messages that this client has not seen are not kept any more';
  return { code: HISTORY_GONE, message, data };
}
