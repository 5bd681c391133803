/**
 * The routes of one edge: which path and method goes where, and what is said where nothing is (contract 8).
 */

import type { HttpRequest, HttpResponse, TemplatedApp } from 'uWebSockets.js';
import type { Right } from '../core/grant.js';
import { isStreamName } from '../core/stream-name.js';
import { RequestError } from '../errors.js';
import { readMount } from '../mcp/mount.js';
import type { PageFormat } from '../wire/page.js';
import type { Handler } from './admission/access.js';
import { admit, countConnection } from './admission/admission.js';
import { showConsole } from './console/console.js';
import { showActivity } from './console/show-activity.js';
import { showMcp } from './console/show-mcp.js';
import { WATCH_PAGE, WATCH_PAGE_HEADERS } from './console/watch-page.js';
import type { EdgeServices } from './edge-services.js';
import { negotiate } from './http/accept.js';
import { Exchange } from './http/exchange.js';
import { Query } from './http/query.js';
import type { RequestView } from './http/request-view.js';
import { checkOrigin, handleMcp, mountName } from './mcp/mcp.js';
import { publish } from './publish/publish.js';
import {
  closeStream,
  createStream,
  deleteStream,
  listStreams,
  showHead,
  showReaders,
  showState,
} from './stream-admin.js';
import { subscribeToMany } from './subscribe/multi-subscribe.js';
import { acknowledge, forget } from './subscribe/named-subscriber.js';
import { readPage } from './subscribe/page.js';
import { subscribeToPrefix } from './subscribe/prefix-subscribe.js';
import { subscribe } from './subscribe/subscribe.js';
import { addWebSocket, badHandshake } from './websocket/websocket.js';

const EVENT_STREAM = 'text/event-stream';
const FORMATS: Readonly<Record<string, PageFormat>> = {
  'application/json': 'json',
  'application/x-ndjson': 'ndjson',
  'application/msgpack': 'msgpack',
};
/** What a stream can be read as; the first is for clients that do not mind. */
const READABLE_TYPES = [...Object.keys(FORMATS), EVENT_STREAM];

/** What streams can be read as: a list of what they are, or their events. */
const LISTED_TYPES = ['application/json', EVENT_STREAM];

const STREAMS = '/v1/streams';
const STREAM = '/v1/streams/:stream';
const STATE = '/v1/streams/:stream/state';
const ACK = '/v1/streams/:stream/ack';
const SUBSCRIBER = '/v1/streams/:stream/subscribers/:subscriber';
const READERS = '/v1/streams/:stream/readers';
const ACTIVITY = '/v1/activity';
const MCP = '/v1/mcp';
const CONSOLE = ['/console', '/console/*'];
const CLOSE = '/v1/streams/:stream/close';

/** Which methods a path has, for `Allow`. The first pattern that fits decides. */
const METHODS: readonly (readonly [RegExp, string])[] = [
  [/^\/v1\/streams$/, 'GET, HEAD'],
  [/^\/v1\/streams\/[^/]+$/, 'GET, HEAD, POST, PUT, DELETE'],
  [/^\/v1\/streams\/[^/]+\/(state|readers)$/, 'GET, HEAD'],
  [/^\/v1\/(activity|mcp)$/, 'GET, HEAD'],
  [/^\/console(\/.*)?$/, 'GET, HEAD'],
  [/^\/v1\/streams\/[^/]+\/(close|ack)$/, 'POST'],
  [/^\/v1\/streams\/[^/]+\/subscribers\/[^/]+$/, 'DELETE'],
  [/^\/(healthz|readyz|metrics)?$/, 'GET, HEAD'],
];

type OpenHandler = (exchange: Exchange, req: HttpRequest) => Promise<void> | void;
type RequestHandler = (res: HttpResponse, req: HttpRequest) => void;

/** Gives an app, which need not listen yet, the routes of one edge. */
export function addRoutes(app: TemplatedApp, edge: EdgeServices): void {
  // What operators look at answers even when there are too many connections.
  const always =
    (handler: OpenHandler, { mayBeHead } = { mayBeHead: false }) =>
    (res: HttpResponse, req: HttpRequest) => {
      const exchange = new Exchange(edge, res, req);
      if (mayBeHead) exchange.noteMethod(req);
      void exchange.run(() => handler(exchange, req));
    };
  const route = (handler: OpenHandler, options?: { mayBeHead: boolean }) =>
    always((exchange, req) => {
      admit(edge);
      return handler(exchange, req);
    }, options);
  const named = (right: Right, handler: Handler, options?: { mayBeHead: boolean }) =>
    route((exchange, req) => edge.access.guard(exchange, req, right, streamName(req), handler), options);

  /** What can be asked for by GET can be by HEAD, and is answered without its body (RFC 9110, 9.1). */
  const readable = (path: string, handle: (options: { mayBeHead: boolean }) => RequestHandler) => {
    app.get(path, handle({ mayBeHead: false }));
    app.head(path, handle({ mayBeHead: true }));
  };

  addWebSocket(app, STREAM, edge);
  app.post(STREAM, (res, req) => startPublish(new Exchange(edge, res, req), req));
  app.get(STREAM, named('subscribe', readStream));
  app.head(STREAM, named('inspect', showHead, { mayBeHead: true }));
  app.put(STREAM, named('admin', createStream));
  app.del(STREAM, named('admin', deleteStream));
  readable(STREAMS, (options) => route(readStreams, options));
  readable(STATE, (options) => named('inspect', showState, options));
  readable(READERS, (options) => named('admin', showReaders, options));
  readable(ACTIVITY, (options) =>
    route((exchange, req) => edge.access.guard(exchange, req, 'admin', '', showActivity), options),
  );
  readable(MCP, (options) =>
    route((exchange, req) => edge.access.guard(exchange, req, 'admin', '', showMcp), options),
  );
  app.post(CLOSE, named('publish', closeStream));
  app.post(ACK, named('subscribe', acknowledge));
  app.del(
    SUBSCRIBER,
    named('subscribe', (exchange, name, req) => forget(exchange, name, req.getParameter(1))),
  );
  readable('/healthz', (options) =>
    always((exchange) => exchange.send(200, { 'Content-Type': 'text/plain' }, 'ok\n'), options),
  );
  readable('/readyz', (options) => always(showReady, options));
  readable('/metrics', (options) =>
    always((exchange, req) => edge.access.guard(exchange, req, 'metrics', '', showMetrics), options),
  );
  readable('/', (options) =>
    route((exchange) => exchange.send(200, WATCH_PAGE_HEADERS, WATCH_PAGE), options),
  );
  for (const [mount, text] of edge.config.mcp.entries()) addMcp(app, edge, mount, readMount(text).path);
  if (edge.console !== null) {
    const assets = edge.console;
    for (const path of CONSOLE) {
      readable(path, (options) => route((exchange, req) => showConsole(exchange, assets, req), options));
    }
  }
  app.options('/*', (res, req) => edge.cors.answerPreflight(res, req.getHeader('origin')));
  app.any('/*', route(refusePath, { mayBeHead: true }));

  app.filter((res, change) => countConnection(edge, res, change as number));
}

/** The path of an MCP server, which is called as one publishes to it. */
function addMcp(app: TemplatedApp, edge: EdgeServices, mount: number, path: string): void {
  const call: Handler = (exchange, _name, req) => handleMcp(exchange, req, mount);
  const handle = (res: HttpResponse, req: HttpRequest): void => {
    const exchange = new Exchange(edge, res, req);
    void exchange.run(() => {
      checkOrigin(exchange, req);
      admit(edge);
      return edge.access.guard(exchange, req, 'publish', mountName(path), call);
    });
  };
  app.post(path, handle);
  app.get(path, handle);
  app.del(path, handle);
}

/**
 * Hot path: without a promise where the publisher is known. What is refused before the body has come ends the connection,
 * so that nobody reads a body for nothing.
 */
function startPublish(exchange: Exchange, req: HttpRequest): void {
  const { edge } = exchange;
  try {
    admit(edge);
    const later = edge.access.guard(exchange, req, 'publish', req.getParameter(0), publish);
    later?.catch((error: unknown) => exchange.fail(error, { close: true }));
  } catch (error) {
    exchange.fail(error, { close: true });
  }
}

function readStream(exchange: Exchange, name: string, req: RequestView): Promise<void> | void {
  // One that is whole has gone to the handshake. Other protocols are offers, which a server may leave alone.
  if (req.getHeader('upgrade').toLowerCase() === 'websocket') throw badHandshake();
  const type = negotiate(req.getHeader('accept'), READABLE_TYPES);
  if (type === null) {
    throw new RequestError('not_acceptable', `available: ${READABLE_TYPES.join(', ')}`);
  }
  const query = new Query(req.getQuery());
  if (type === EVENT_STREAM) return subscribe(exchange, req, name, query);
  return readPage(exchange, name, FORMATS[type] as PageFormat, query);
}

function readStreams(exchange: Exchange, req: HttpRequest): Promise<void> | void {
  const type = negotiate(req.getHeader('accept'), LISTED_TYPES);
  if (type === null) throw new RequestError('not_acceptable', `available: ${LISTED_TYPES.join(', ')}`);
  const { access } = exchange.edge;
  // An event stream has no head of its own: HEAD is that of the list.
  if (type !== EVENT_STREAM || req.getMethod() !== 'get') {
    return access.guard(exchange, req, 'admin', '', listStreams);
  }
  const query = new Query(req.getQuery(), ['stream', 'cursor']);
  const prefix = query.get('prefix');
  if (prefix !== undefined) {
    return access.guard(exchange, req, 'follow', prefix, (_exchange, _name, request) =>
      subscribeToPrefix(exchange, request, prefix, query),
    );
  }
  return access.guardAll(exchange, req, 'subscribe', query.all('stream'), (request) =>
    subscribeToMany(exchange, request, query),
  );
}

function showReady(exchange: Exchange): void {
  if (exchange.edge.draining) throw new RequestError('draining');
  exchange.send(200, { 'Content-Type': 'text/plain' }, 'ready\n');
}

async function showMetrics(exchange: Exchange): Promise<void> {
  const { contentType, text } = await exchange.edge.coordinator.metrics();
  exchange.send(200, { 'Content-Type': contentType }, text);
}

function refusePath({ edge }: Exchange, req: HttpRequest): void {
  const path = req.getUrl();
  const isMcp = edge.config.mcp.some((mount) => readMount(mount).path === path);
  const isOff = edge.console === null && path.startsWith('/console');
  const methods = isMcp ? 'GET, POST, DELETE' : METHODS.find(([pattern]) => pattern.test(path))?.[1];
  if (methods === undefined || isOff) throw new RequestError('not_found');
  throw new RequestError('method_not_allowed', undefined, {}, { Allow: `${methods}, OPTIONS` });
}

function streamName(req: HttpRequest): string {
  const name = req.getParameter(0);
  if (!isStreamName(name)) throw new RequestError('invalid_stream_name');
  return name;
}
