/** What the answer of a server is, as far as HTTP says. */

import type { IncomingMessage } from 'node:http';
import { readText } from './http-request.js';
import type { Reply } from './upstream.js';

/** Headers of an answer that clients need: what it is, how to authorize, and when to come back. */
const TOLD_HEADERS = ['content-type', 'www-authenticate', 'retry-after'];

export function isSuccess({ statusCode = 0 }: IncomingMessage): boolean {
  return statusCode >= 200 && statusCode < 300;
}

export function isEventStream(response: IncomingMessage): boolean {
  return headerOf(response, 'content-type')?.toLowerCase().startsWith('text/event-stream') === true;
}

export function headerOf({ headers }: IncomingMessage, name: string): string | null {
  const value = headers[name];
  return typeof value === 'string' && value !== '' ? value : null;
}

/** The answer as a whole. @throws {UpstreamError} */
export async function toReply(response: IncomingMessage, bytesMax: number): Promise<Reply> {
  const headers: Record<string, string> = {};
  for (const name of TOLD_HEADERS) {
    const value = headerOf(response, name);
    if (value !== null) headers[name] = value;
  }
  const body = await readText(response, bytesMax);
  return { status: response.statusCode ?? 502, headers, body };
}
