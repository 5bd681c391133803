import assert from 'node:assert/strict';
import { MEDIA_TYPES, stateOf } from './gapless-client.js';
import { type HttpResponse, request } from './http.js';

/** A named subscriber, as the state of its stream shows it (contract 2.2). */
export interface Named {
  name: string;
  acked: string;
  lag: number | null;
}

/** POST of contract 7, whatever comes of it. */
export function askAcknowledgement(port: number, stream: string, body: unknown): Promise<HttpResponse> {
  return request(port, {
    path: `/v1/streams/${stream}/ack`,
    headers: { 'Content-Type': MEDIA_TYPES.json },
    body: JSON.stringify(body),
  });
}

/** @returns what the subscriber is known to have then. */
export async function acknowledge(
  port: number,
  stream: string,
  subscriber: string,
  cursor: string,
): Promise<string> {
  const response = await askAcknowledgement(port, stream, { subscriber, cursor });
  assert.equal(response.status, 200, response.text);
  return response.json<{ acked: string }>().acked;
}

export async function namedOf(port: number, stream: string): Promise<Named[]> {
  return ((await stateOf(port, stream)) as unknown as { named: Named[] }).named;
}

/** What each of a stream is known to have, by its name. */
export async function ackedOf(port: number, stream: string): Promise<Record<string, string>> {
  return Object.fromEntries((await namedOf(port, stream)).map(({ name, acked }) => [name, acked]));
}
