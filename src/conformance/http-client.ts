import { type ClientRequest, request as httpRequest, type IncomingMessage } from 'node:http';
import { request as httpsRequest } from 'node:https';
import type { Duplex } from 'node:stream';
import { Answer } from './answer.js';
import { Mismatch } from './expect.js';

/** How a server is reached. */
export interface Endpoint {
  readonly url: URL;
  /** Sent as a bearer token. */
  readonly token?: string | undefined;
}

export interface Question {
  readonly method?: string;
  /** Path and query, sent as they are, below the path of the endpoint's URL. */
  readonly path: string;
  readonly headers?: Readonly<Record<string, string>>;
  readonly body?: string | Uint8Array | undefined;
  /** The body is begun only; for what is refused by its announced length. */
  readonly isUnfinished?: boolean;
}

export const ANSWER_MS_MAX = 30_000;

/** Sends a request on a connection of its own; resolves with the head of the answer, its body yet to be read. */
export function ask(endpoint: Endpoint, question: Question): Promise<IncomingMessage> {
  const { promise, resolve, reject } = withResolvers<IncomingMessage>();
  const request = open(endpoint, question);
  request.once('response', (message) => {
    request.setTimeout(0);
    resolve(message);
  });
  // For good: an error may come after the first, when the server has refused and closed while the body was sent.
  request.on('error', (error) => reject(new Mismatch(`${nameOf(question)}: ${error.message}`)));
  request.setTimeout(ANSWER_MS_MAX, () => request.destroy(new Error(`no answer in ${ANSWER_MS_MAX} ms`)));
  const { body, isUnfinished = false } = question;
  if (body !== undefined) request.write(body);
  if (!isUnfinished) request.end();
  else request.flushHeaders();
  return promise;
}

/** Asks for another protocol: resolves with the socket where it is given, and else with the head of another answer. */
export function askUpgrade(
  endpoint: Endpoint,
  question: Question,
): Promise<{ message: IncomingMessage; socket: Duplex | null; head: Buffer }> {
  const { promise, resolve, reject } = withResolvers<Awaited<ReturnType<typeof askUpgrade>>>();
  const request = open(endpoint, question);
  request.once('upgrade', (message, socket, head) => {
    socket.setTimeout(0);
    resolve({ message, socket, head });
  });
  request.once('response', (message) => resolve({ message, socket: null, head: Buffer.alloc(0) }));
  request.on('error', (error) => reject(new Mismatch(`${nameOf(question)}: ${error.message}`)));
  request.setTimeout(ANSWER_MS_MAX, () => request.destroy(new Error(`no answer in ${ANSWER_MS_MAX} ms`)));
  request.end();
  return promise;
}

/** Sends a request and reads the whole answer. */
export async function exchange(endpoint: Endpoint, question: Question): Promise<Answer> {
  const message = await ask(endpoint, question);
  try {
    return await readAnswer(message);
  } catch (error) {
    throw new Mismatch(`${nameOf(question)}: the answer was cut: ${(error as Error).message}`);
  } finally {
    message.destroy();
  }
}

export async function readAnswer(message: IncomingMessage): Promise<Answer> {
  const chunks: Buffer[] = [];
  for await (const chunk of message) chunks.push(chunk as Buffer);
  return new Answer(message.statusCode ?? 0, message.headers, Buffer.concat(chunks));
}

function open({ url, token }: Endpoint, question: Question): ClientRequest {
  const { path, body, headers = {}, method = body === undefined ? 'GET' : 'POST' } = question;
  const length = body === undefined ? {} : { 'Content-Length': String(Buffer.byteLength(body)) };
  const bearer = token === undefined ? {} : { Authorization: `Bearer ${token}` };
  const request = url.protocol === 'https:' ? httpsRequest : httpRequest;
  return request({
    protocol: url.protocol,
    hostname: url.hostname.replace(/^\[(.*)\]$/, '$1'),
    port: url.port,
    path: `${url.pathname.replace(/\/$/, '')}${path}`,
    method,
    headers: { ...length, ...bearer, ...headers },
    agent: false,
  });
}

function nameOf({ method, path, body }: Question): string {
  return `${method ?? (body === undefined ? 'GET' : 'POST')} ${path}`;
}

function withResolvers<T>() {
  let resolve!: (value: T) => void;
  let reject!: (error: Error) => void;
  const promise = new Promise<T>((res, rej) => {
    resolve = res;
    reject = rej;
  });
  return { promise, resolve, reject };
}
