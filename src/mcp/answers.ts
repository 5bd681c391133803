/** Answers that the front itself gives, whole: refusals, and what it says in the place of a server. */

import { BAD_REQUEST, errorText } from './json-rpc.js';
import type { WholeAnswer } from './messages.js';
import { type Reply, UpstreamError } from './upstream/upstream.js';

export const PARSE_ERROR = -32700;

export const JSON_ANSWER = {
  verdict: 'answer',
  status: 200,
  headers: { 'Content-Type': 'application/json', 'Cache-Control': 'no-store' },
} as const;
export const ACCEPTED: WholeAnswer = { verdict: 'answer', status: 202, headers: {}, body: '' };
/** Clients that have all there is stop asking at this status, and at no other. */
export const NOTHING_MORE: WholeAnswer = {
  ...refusal(405, BAD_REQUEST, 'nothing more comes on this stream'),
  headers: { 'Content-Type': 'application/json', Allow: 'POST, DELETE' },
};
export const TAKEN_OVER = refusal(503, BAD_REQUEST, 'another connection took over');

export function refusal(status: number, code: number, message: string, id = 'null'): WholeAnswer {
  return { ...JSON_ANSWER, status, body: errorText(id, { code, message }) };
}

export function whole({ status, headers, body }: Reply): WholeAnswer {
  return { verdict: 'answer', status, headers, body };
}

/** A failure of the server, as an answer. @throws any other error. */
export function passFailure(error: unknown, id: string): Reply {
  if (!(error instanceof UpstreamError)) throw error;
  return {
    status: 502,
    headers: { 'content-type': 'application/json' },
    body: errorText(id, error.toRpcError()),
  };
}
