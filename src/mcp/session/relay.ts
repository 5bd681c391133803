/** What clients of either transport say to the server of their session, and what it answers in one piece. */

import { ACCEPTED, passFailure, whole } from '../answers.js';
import { FrontCount, type FrontCounts } from '../front-counts.js';
import type { RpcMessage } from '../json-rpc.js';
import type { ClientRequest, WholeAnswer } from '../messages.js';
import { ASSUMED_REVISION } from '../revision.js';
import type { Reply } from '../upstream/upstream.js';
import type { Session } from './session.js';

/** Begins the session at the server. @returns its answer, an error among them, or what it said instead. */
export async function beginAtServer(
  session: Session,
  { body, forwarded }: Pick<ClientRequest, 'body' | 'forwarded'>,
  call: string,
  counts: FrontCounts,
): Promise<RpcMessage | Reply> {
  const answer = await session.upstream
    .initialize(body as Uint8Array, forwarded, session.own)
    .catch((error: unknown) => passFailure(error, call));
  if ('status' in answer || answer.value === undefined) return answer;
  const { protocolVersion, capabilities } = (answer.value ?? {}) as Record<string, unknown>;
  counts.add(FrontCount.sessionsBegun, 1);
  session.revision = typeof protocolVersion === 'string' ? protocolVersion : ASSUMED_REVISION;
  session.capabilities = Object.keys((capabilities ?? {}) as object);
  return answer;
}

/** Calls among what a client sends, by their ids as JSON. */
export function callsIn(messages: readonly RpcMessage[]): string[] {
  return messages.flatMap(({ kind, id }) => (kind === 'request' && id !== null ? [id] : []));
}

/** Calls that a client cancels by what it sends, by their ids as JSON. */
export function cancelledIn(messages: readonly RpcMessage[]): string[] {
  return messages.flatMap(({ method, value }) => {
    if (method !== 'notifications/cancelled') return [];
    const { requestId } = (value ?? {}) as { requestId?: unknown };
    return requestId === undefined ? [] : [JSON.stringify(requestId)];
  });
}

/** Passes notifications on, and answers to requests of the server: their order is that of their answers. */
export async function passOn(
  session: Session,
  { body, forwarded }: Pick<ClientRequest, 'body' | 'forwarded'>,
  messages: readonly RpcMessage[],
): Promise<WholeAnswer> {
  const isRepeat = messages.every(
    (message) => message.kind === 'response' && !session.serverRequests.isFirstAnswer(message),
  );
  if (isRepeat) return ACCEPTED;
  const reply = await session.upstream
    .send(body as Uint8Array, forwarded)
    .catch((error: unknown) => passFailure(error, 'null'));
  return reply.status < 300 ? ACCEPTED : whole(reply);
}

/** What a client is told that has missed messages: that what it knows of the server may be old. */
export function changeNotices(capabilities: readonly string[]): string[] {
  return ['tools', 'prompts', 'resources']
    .filter((name) => capabilities.includes(name))
    .map((name) => `{"jsonrpc":"2.0","method":"notifications/${name}/list_changed"}`);
}
