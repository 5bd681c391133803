/**
 * The path of an MCP server (contract 12): looks at the form of a request, asks the front what becomes of it, and answers.
 */

import type { HttpRequest } from 'uWebSockets.js';
import type { Principal } from '../../auth/principal.js';
import { RequestError } from '../../errors.js';
import type { ClientRequest } from '../../mcp/messages.js';
import { refuseWhileDraining } from '../admission/admission.js';
import { negotiate } from '../http/accept.js';
import type { Exchange } from '../http/exchange.js';
import type { RequestView } from '../http/request-view.js';
import { retryMs } from '../http/retry.js';
import { followStream, sendWhole, tellLost } from './mcp-follow.js';

const EVENT_STREAM = 'text/event-stream';
const JSON_TYPE = 'application/json';
const COME_BACK = { 'Content-Type': EVENT_STREAM, 'Cache-Control': 'no-store' };

/** Headers that are between this server and its client, or that the front sets itself. */
const NOT_FORWARDED: ReadonlySet<string> = new Set([
  'accept',
  'accept-encoding',
  'connection',
  'content-length',
  'content-type',
  'cookie',
  'expect',
  'host',
  'keep-alive',
  'last-event-id',
  'mcp-protocol-version',
  'mcp-session-id',
  'origin',
  'proxy-authorization',
  'proxy-connection',
  'te',
  'trailer',
  'transfer-encoding',
  'upgrade',
]);

/** What else there may be in a header does not come through the library as it was sent. */
const ASCII = /^[\t\x20-\x7e]*$/;
/** Other parameters are the client's own business. */
const SESSION_QUERY = /(?:^|&)sessionId=([\w-]+)(?:&|$)/;
const TOKEN = /^[a-z0-9!#$%&'*+.^_`|~-]+$/;

/** The name by which a right to an MCP server is given: `mcp:files` for `/files`. */
export function mountName(path: string): string {
  return `mcp${path.replaceAll('/', ':')}`;
}

/**
 * Before anything else: pages of other origins may not use a server on the reader's own machine (MCP 2025-11-25,
 * Transports, "Security Warning").
 * @throws {RequestError} `origin_not_allowed`
 */
export function checkOrigin({ edge }: Exchange, req: HttpRequest): void {
  if (!edge.cors.mayCall(req.getHeader('origin'))) throw new RequestError('origin_not_allowed');
}

export function handleMcp(exchange: Exchange, req: RequestView, mount: number): Promise<void> | void {
  const { edge } = exchange;
  const method = req.getMethod().toUpperCase() as ClientRequest['method'];
  const headers = readHeaders(exchange, req);
  const sse = headers.session === '' ? readSse(method, req) : null;
  // An `EventSource` that is refused never comes back.
  if (edge.draining && method === 'GET' && sse !== null) {
    return exchange.send(200, COME_BACK, `retry: ${retryMs(edge)}\n\n`);
  }
  refuseWhileDraining(edge);
  checkMedia(method, req, sse !== null);
  const asked = { ...headers, session: sse ?? headers.session, isSse: sse !== null, method, mount };
  exchange.watch();
  if (method !== 'POST') return answer(exchange, { ...asked, body: null });
  if (Number(req.getHeader('content-length')) > edge.config.bodyBytesMax) throw bodyTooLarge(exchange);
  exchange.readBody(edge.config.bodyBytesMax, (body) => {
    if (body === null) return exchange.fail(bodyTooLarge(exchange), { close: true });
    // The library takes the body back when this returns.
    void exchange.run(() => answer(exchange, { ...asked, body: body.slice() }));
  });
}

async function answer(exchange: Exchange, asked: Omit<ClientRequest, 'reader'>): Promise<void> {
  const { mcp } = exchange.edge;
  if (mcp === null) throw new RequestError('not_found');
  const reader = mcp.front.newReader();
  exchange.onGone(() => mcp.front.left(reader, 0, false));
  const verdict = await mcp.front.ask({ ...asked, reader });
  switch (verdict.verdict) {
    case 'answer':
      return exchange.send(verdict.status, verdict.headers, verdict.body);
    case 'whole':
      return sendWhole(exchange, verdict);
    case 'lost':
      return tellLost(exchange, verdict);
    case 'follow': {
      const followed = followStream(exchange, verdict, reader);
      if (followed !== 'reads') mcp.front.left(reader, 0, followed === 'refused');
    }
  }
}

/**
 * A GET without a session is how a client of HTTP+SSE opens one (MCP 2025-11-25, Transports, "Backwards Compatibility"),
 * for Streamable HTTP has none such here; and its POSTs go where the endpoint's query says.
 * @returns the session, empty for a GET; null: it is a request of Streamable HTTP.
 */
function readSse(method: ClientRequest['method'], req: RequestView): string | null {
  if (method === 'GET') return '';
  return method === 'POST' ? (SESSION_QUERY.exec(req.getQuery() ?? '')?.[1] ?? null) : null;
}

/** @throws {RequestError} `not_acceptable`, `unsupported_type` */
function checkMedia(method: ClientRequest['method'], req: RequestView, isSse: boolean): void {
  const accept = req.getHeader('accept');
  const takes = (type: string): boolean => negotiate(accept, [type]) !== null;
  if (method === 'GET' && !(accept !== '' && takes(EVENT_STREAM))) {
    throw new RequestError('not_acceptable', `available: ${EVENT_STREAM}`);
  }
  if (method !== 'POST') return;
  // An answer to a POST of HTTP+SSE has no body.
  if (!isSse && (!takes(EVENT_STREAM) || !takes(JSON_TYPE))) {
    throw new RequestError('not_acceptable', `accept both ${JSON_TYPE} and ${EVENT_STREAM}`);
  }
  const type = req.getHeader('content-type').split(';', 1)[0]?.trim().toLowerCase();
  if (type !== JSON_TYPE) throw new RequestError('unsupported_type', `expected ${JSON_TYPE}`);
}

function readHeaders(
  { principal }: Exchange,
  req: RequestView,
): Pick<ClientRequest, 'principal' | 'session' | 'revision' | 'lastEventId' | 'forwarded'> {
  const forwarded: Record<string, string> = {};
  req.forEach((name, value) => {
    if (!NOT_FORWARDED.has(name) && TOKEN.test(name) && ASCII.test(value)) forwarded[name] = value;
  });
  // What somebody shows to this server is no business of the one behind it; who shows nothing here may mean that one.
  if (principal.keyName !== '') delete forwarded.authorization;
  return {
    principal: nameOf(principal),
    session: req.getHeader('mcp-session-id'),
    revision: req.getHeader('mcp-protocol-version'),
    lastEventId: req.getHeader('last-event-id'),
    forwarded,
  };
}

/** Tokens without a subject are told apart by their key only. */
function nameOf({ id, keyName }: Principal): string {
  if (keyName === '') return '';
  return id === '' ? `key:${keyName}` : `id:${id}`;
}

function bodyTooLarge({ edge }: Exchange): RequestError {
  return new RequestError('body_too_large', `expected at most ${edge.config.bodyBytesMax} bytes`);
}
