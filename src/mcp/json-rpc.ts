/**
 * JSON-RPC 2.0 messages as MCP carries them: which kind each is and whom it concerns. Their contents are not looked at.
 */

export interface RpcMessage {
  readonly kind: 'request' | 'notification' | 'response';
  /** The id as JSON, so that `1` and `"1"` stay two; null: it has none. */
  readonly id: string | null;
  /** Empty for responses. */
  readonly method: string;
  /** The message as it is passed on. */
  readonly text: string;
  /** `params` of requests and notifications, `result` of responses; undefined where there is none. */
  readonly value: unknown;
}

export interface RpcError {
  readonly code: number;
  readonly message: string;
  readonly data?: Readonly<Record<string, unknown>>;
}

/* Codes of the front's own, from the part that JSON-RPC leaves to implementations and MCP to nobody else. */

/** What the SDKs call a bad request. */
export const BAD_REQUEST = -32000;
/** What the SDKs call a session that is not there. */
export const NO_SESSION = -32001;
/** The server behind the front failed; `data.reason` says how. */
export const UPSTREAM_FAILED = -32016;
/** What the client asked to resume after is not there any more. The call may have been carried out. */
export const HISTORY_GONE = -32017;
/** The session ended while the call was under way. */
export const SESSION_ENDED = -32018;
/** More than the front takes at a time. */
export const LIMIT_REACHED = -32019;

/** Messages in one body; revision 2025-03-26 alone has batches. */
const BATCH_MAX = 100;

/** The messages of a body; null when it is no JSON-RPC. */
export function readMessages(text: string): RpcMessage[] | null {
  let body: unknown;
  try {
    body = JSON.parse(text);
  } catch {
    return null;
  }
  if (!Array.isArray(body)) {
    const message = toMessage(body, text);
    return message === null ? null : [message];
  }
  if (body.length === 0 || body.length > BATCH_MAX) return null;
  const messages: RpcMessage[] = [];
  for (const item of body) {
    const message = toMessage(item, null);
    if (message === null) return null;
    messages.push(message);
  }
  return messages;
}

/** An answer with an error. @param id as JSON; `null` where nobody knows what it answers. */
export function errorText(id: string, error: RpcError): string {
  return `{"jsonrpc":"2.0","id":${id},"error":${JSON.stringify(error)}}`;
}

function toMessage(value: unknown, text: string | null): RpcMessage | null {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) return null;
  const { jsonrpc, id, method, params, result, error } = value as Record<string, unknown>;
  if (jsonrpc !== '2.0') return null;
  const passed = text ?? JSON.stringify(value);
  if (method === undefined) {
    if ((result === undefined) === (error === undefined)) return null;
    // An error that answers nothing in particular has the id null, or none.
    const answered = isId(id) ? JSON.stringify(id) : null;
    if (answered === null && error === undefined) return null;
    return { kind: 'response', id: answered, method: '', text: passed, value: result };
  }
  if (typeof method !== 'string') return null;
  if (id === undefined) return { kind: 'notification', id: null, method, text: passed, value: params };
  return isId(id) ? { kind: 'request', id: JSON.stringify(id), method, text: passed, value: params } : null;
}

function isId(id: unknown): id is string | number {
  return typeof id === 'string' || typeof id === 'number';
}
