/** What the answer of a server is, as far as HTTP says. */

import { readMessages } from '../json-rpc.js';
import { readText } from './http-request.js';
import type { HttpResponse } from './http-response.js';
import { type Reply, UpstreamError } from './upstream.js';

/** Headers of an answer that clients need: what it is, how to authorize, and when to come back. */
const TOLD_HEADERS = ['content-type', 'www-authenticate', 'retry-after'];

export function isSuccess({ status }: HttpResponse): boolean {
  return status >= 200 && status < 300;
}

export function isEventStream(response: HttpResponse): boolean {
  return response.header('content-type')?.toLowerCase().startsWith('text/event-stream') === true;
}

/** What servers that have forgotten a session say with a 400, those of the official SDK's examples among them. */
const SESSION_WORDS = /session|not initialized/i;

/**
 * Whether a refusal says that the server does not know the session: by 404, or by a 400 that speaks of the session and
 * answers no call. If it meant something else, a session is begun anew for nothing, and no more.
 */
export function hasForgotten({ status, body }: Reply): boolean {
  if (status !== 400 || !SESSION_WORDS.test(body)) return status === 404;
  return readMessages(body)?.some(({ id }) => id !== null) !== true;
}

/** A refusal as a whole; one whose body cannot be read has none. */
export async function toRefusal(response: HttpResponse, bytesMax: number): Promise<Reply> {
  return toReply(response, bytesMax).catch((error: unknown) => {
    if (!(error instanceof UpstreamError)) throw error;
    return { status: response.status, headers: {}, body: '' };
  });
}

/** The answer as a whole. @throws {UpstreamError} */
export async function toReply(response: HttpResponse, bytesMax: number): Promise<Reply> {
  const headers: Record<string, string> = {};
  for (const name of TOLD_HEADERS) {
    const value = response.header(name);
    if (value !== null) headers[name] = value;
  }
  const body = await readText(response, bytesMax);
  return { status: response.status, headers, body };
}
