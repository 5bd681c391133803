import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import { positionOf } from './cursor.js';
import { type HttpConnection, type HttpRequest, type HttpResponse, request } from './http.js';

export interface Published {
  epoch: string;
  first: number;
  last: number;
}

/** `GET …/state` (contract 2.2). */
export interface StreamState {
  epoch: string;
  floor: number;
  logFloor: number | null;
  committed: number;
  head: number;
  bytes: number;
  subscribers: number;
}

/** RFC 9457, with what the contract adds (sections 4.4 and 8). */
export interface Problem {
  type: string;
  title: string;
  status: number;
  code: string;
  reason?: string;
  cursor?: string;
  epoch?: string | null;
  floor?: number;
  head?: number;
  earliest?: string;
  [extra: string]: unknown;
}

export interface PageEvent {
  id: string;
  type: string;
  data: string;
  encoding?: string;
}

/** `GET` with `Accept: application/json` (contract 6). */
export interface Page {
  events: PageEvent[];
  next: string;
  upToDate: boolean;
  closed: boolean;
}

export const MEDIA_TYPES = {
  json: 'application/json',
  text: 'text/plain',
  form: 'application/x-www-form-urlencoded',
  ndjson: 'application/x-ndjson',
  binary: 'application/octet-stream',
  msgpack: 'application/msgpack',
  batch: 'application/vnd.gapless.batch+json',
} as const;

/** A stream name that no other test has, with a word that says whose it is. */
export function freshStream(word: string): string {
  return `${word}-${randomBytes(6).toString('hex')}`;
}

export function publishRequest(
  stream: string,
  body: string | Uint8Array,
  contentType: string = MEDIA_TYPES.text,
  headers: Readonly<Record<string, string>> = {},
): HttpRequest {
  const typed = contentType === '' ? {} : { 'Content-Type': contentType };
  return { method: 'POST', path: `/v1/streams/${stream}`, headers: { ...typed, ...headers }, body };
}

/** Publishes and fails unless it was acknowledged. Each call is a connection of its own unless one is given. */
export async function publish(
  target: number | HttpConnection,
  stream: string,
  body: string | Uint8Array,
  contentType?: string,
  headers?: Readonly<Record<string, string>>,
): Promise<Published> {
  const asked = publishRequest(stream, body, contentType, headers);
  const response = typeof target === 'number' ? await request(target, asked) : await target.request(asked);
  return publishedOf(response);
}

/** Reads the answer to a publish as contract 3.3 has it. */
export function publishedOf(response: HttpResponse): Published {
  assert.equal(response.status, 200, `publishing answered ${response.status}: ${response.text}`);
  const published = response.json<Published>();
  assert.ok(published.first >= 1 && published.last >= published.first, response.text);
  const cursor = response.header('gapless-cursor');
  assert.ok(cursor !== undefined, 'no Gapless-Cursor');
  assert.deepEqual(positionOf(cursor), { epoch: published.epoch, seq: published.last });
  return published;
}

/** Publishes texts as one atomic batch, one event each. */
export function publishLines(
  target: number | HttpConnection,
  stream: string,
  lines: readonly string[],
): Promise<Published> {
  return publish(target, stream, lines.join('\n'), MEDIA_TYPES.ndjson);
}

export async function createStream(port: number, stream: string, config: object = {}): Promise<void> {
  const response = await putStream(port, stream, config);
  assert.equal(response.status, 201, response.text);
}

export function putStream(port: number, stream: string, config: object): Promise<HttpResponse> {
  const headers = { 'Content-Type': MEDIA_TYPES.json };
  return request(port, {
    method: 'PUT',
    path: `/v1/streams/${stream}`,
    headers,
    body: JSON.stringify(config),
  });
}

export async function closeStream(port: number, stream: string): Promise<void> {
  const response = await request(port, { method: 'POST', path: `/v1/streams/${stream}/close` });
  assert.ok(
    response.status === 200 || response.status === 204,
    `closing answered ${response.status}: ${response.text}`,
  );
}

export async function deleteStream(port: number, stream: string): Promise<void> {
  const response = await request(port, { method: 'DELETE', path: `/v1/streams/${stream}` });
  assert.ok(
    response.status === 200 || response.status === 204,
    `deleting answered ${response.status}: ${response.text}`,
  );
}

export async function stateOf(port: number, stream: string): Promise<StreamState> {
  const response = await request(port, { path: `/v1/streams/${stream}/state` });
  assert.equal(response.status, 200, response.text);
  return response.json<StreamState>();
}

export function readPage(
  port: number,
  stream: string,
  query = '',
  accept: string = MEDIA_TYPES.json,
): Promise<HttpResponse> {
  const path = `/v1/streams/${stream}${query === '' ? '' : `?${query}`}`;
  return request(port, { path, headers: { Accept: accept } });
}

/** All events that can be read, by pages, from the earliest. */
export async function readAll(port: number, stream: string): Promise<PageEvent[]> {
  const events: PageEvent[] = [];
  let query = '';
  for (;;) {
    const response = await readPage(port, stream, query);
    assert.equal(response.status, 200, response.text);
    const page = response.json<Page>();
    events.push(...page.events);
    if (page.upToDate) return events;
    query = `cursor=${page.next}`;
  }
}

/** Fails unless the answer is the stable problem document of contract 8; returns it. */
export function assertProblem(response: HttpResponse, status: number, code: string): Problem {
  assert.equal(
    response.status,
    status,
    `expected ${status} ${code}, got ${response.status}: ${response.text}`,
  );
  assert.match(response.header('content-type') ?? '', /^application\/problem\+json(;|$)/);
  const problem = response.json<Problem>();
  assert.equal(problem.code, code, response.text);
  assert.equal(problem.status, status);
  assert.equal(typeof problem.type, 'string');
  assert.equal(typeof problem.title, 'string');
  return problem;
}
