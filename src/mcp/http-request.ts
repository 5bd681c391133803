/**
 * HTTP to a server behind the front: one request, and its answer read in a bounded way.
 */

import {
  type ClientRequest,
  Agent as HttpAgent,
  type IncomingMessage,
  request as requestHttp,
} from 'node:http';
import { Agent as HttpsAgent, request as requestHttps } from 'node:https';
import type { SseDecoder, SseFrame } from '../client/sse-decoder.js';
import { UpstreamError } from './upstream.js';

/**
 * How long a connection is kept that nobody uses. Less than the five seconds after which common servers hang up, for a
 * request that meets that hang-up is lost and may not be sent again.
 */
const IDLE_CONNECTION_MS = 3000;
/** Connections kept for later. */
const IDLE_CONNECTIONS_MAX = 64;

/** Connections to one server. */
export class HttpTarget {
  readonly url: URL;
  readonly agent: HttpAgent;
  readonly #silenceMs: number;

  /** @param silenceMs how long nothing may come before a request is given up. */
  constructor(url: URL, silenceMs: number) {
    const options = { keepAlive: true, timeout: IDLE_CONNECTION_MS, maxFreeSockets: IDLE_CONNECTIONS_MAX };
    this.url = url;
    this.agent = url.protocol === 'https:' ? new HttpsAgent(options) : new HttpAgent(options);
    this.#silenceMs = silenceMs;
  }

  /** @param underWay holds the request until it is over. @throws {UpstreamError} `unreachable` or `silent` */
  request(
    method: 'POST' | 'GET' | 'DELETE',
    headers: Readonly<Record<string, string>>,
    body: Uint8Array | null,
    underWay?: Set<ClientRequest>,
  ): Promise<IncomingMessage> {
    const send = this.url.protocol === 'https:' ? requestHttps : requestHttp;
    const length = body === null ? {} : { 'Content-Length': String(body.length) };
    const options = { method, agent: this.agent, headers: { ...headers, ...length } };
    return new Promise((resolve, reject) => {
      const request = tryTo(() => send(this.url, options));
      if (request === null) return reject(new UpstreamError('unreachable'));
      underWay?.add(request);
      request.once('close', () => underWay?.delete(request));
      let isSilent = false;
      request.setTimeout(this.#silenceMs, () => {
        isSilent = true;
        request.destroy();
      });
      request.once('response', (response) => {
        // What breaks it later is what reading it throws.
        response.on('error', () => undefined);
        silences.set(response, () => isSilent);
        resolve(response);
      });
      request.on('error', () => reject(new UpstreamError(isSilent ? 'silent' : 'unreachable')));
      request.end(body);
    });
  }

  close(): void {
    this.agent.destroy();
  }
}

/** Headers of clients are passed on, and may be such as Node does not send; null then. */
function tryTo(send: () => ClientRequest): ClientRequest | null {
  try {
    return send();
  } catch (error) {
    if (!(error as NodeJS.ErrnoException).code?.startsWith('ERR_INVALID')) throw error;
    return null;
  }
}

/** Whether an answer broke because nothing came for too long. */
const silences = new WeakMap<IncomingMessage, () => boolean>();

/** @throws {UpstreamError} `broken`, `silent` or `message_too_large` */
export function readText(response: IncomingMessage, bytesMax: number): Promise<string> {
  const chunks: Buffer[] = [];
  let length = 0;
  // Listeners and no iteration, which would take longer than all else that is done for a small answer.
  return new Promise((resolve, reject) => {
    response.on('data', (chunk: Buffer) => {
      length += chunk.length;
      if (length > bytesMax) reject(tooLarge(response));
      else chunks.push(chunk);
    });
    response.once('end', () => resolve(Buffer.concat(chunks).toString()));
    response.once('close', () => reject(breakOf(response)));
  });
}

/** The blocks of an event stream. @throws {UpstreamError} as `readText` */
export async function* readEvents(
  response: IncomingMessage,
  decoder: SseDecoder,
  bytesMax: number,
): AsyncGenerator<SseFrame> {
  let length = 0;
  for await (const chunk of chunksOf(response)) {
    length += chunk.length;
    for (const frame of decoder.push(chunk)) {
      if (frame.data !== null && frame.data.length > bytesMax) throw tooLarge(response);
      length = 0;
      yield frame;
    }
    if (length > bytesMax) throw tooLarge(response);
  }
}

function tooLarge(response: IncomingMessage): UpstreamError {
  response.destroy();
  return new UpstreamError('message_too_large');
}

async function* chunksOf(response: IncomingMessage): AsyncGenerator<Buffer> {
  try {
    for await (const chunk of response) yield chunk as Buffer;
  } catch {
    throw breakOf(response);
  }
}

function breakOf(response: IncomingMessage): UpstreamError {
  return new UpstreamError(silences.get(response)?.() === true ? 'silent' : 'broken');
}
