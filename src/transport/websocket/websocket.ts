/**
 * The WebSocket handshake (contract 5, RFC 6455). Only what concerns the connection itself is refused by HTTP status,
 * which a page cannot see; whatever else is wrong is said in a message, and by the close code after it.
 */

import type { HttpRequest, TemplatedApp, us_socket_context_t, WebSocket } from 'uWebSockets.js';
import { RequestError } from '../../errors.js';
import { Counter } from '../../ring/counters.js';
import type { MessageFormat } from '../../wire/live-message.js';
import { admit, refuseWhileDraining } from '../admission/admission.js';
import type { EdgeServices } from '../edge-services.js';
import { Exchange } from '../http/exchange.js';
import { WebSocketConnection } from './websocket-connection.js';

const PROTOCOLS: Readonly<Record<string, MessageFormat>> = {
  'gapless.json.v1': 'json',
  'gapless.msgpack.v1': 'msgpack',
};
const VERSION = '13';

/** The library takes from 8 to 960 seconds. */
const IDLE_SECONDS_MIN = 8;
/** Heartbeats, each with a ping, that a peer may leave unanswered before it is taken for dead. */
const HEARTBEATS_MISSED_MAX = 3;

/** The library copies the members of what it is given, so the connection is one of them. */
interface UserData {
  readonly connection: WebSocketConnection;
}

/** Adds WebSocket to a path whose first parameter is a stream. */
export function addWebSocket(app: TemplatedApp, pattern: string, edge: EdgeServices): void {
  const { heartbeatIntervalMs } = edge.config;
  const idleSeconds = Math.ceil((HEARTBEATS_MISSED_MAX * heartbeatIntervalMs) / 1000);
  const { counters } = edge;
  app.ws<UserData>(pattern, {
    upgrade: (res, req, context) => {
      const exchange = new Exchange(edge, res, req);
      void exchange.run(() => {
        admit(edge);
        shakeHands(exchange, req, context);
      });
    },
    open: (ws) => {
      counters.add(Counter.webSockets, 1);
      counters.add(Counter.connectionsInUse, 1);
      void connectionOf(ws).opened(ws);
    },
    drain: (ws) => connectionOf(ws).drained(),
    message: (ws, message) => {
      // The library takes it back when this returns.
      void connectionOf(ws).said(new Uint8Array(message.slice(0)));
    },
    ping: (ws, payload) => connectionOf(ws).pinged(payload.byteLength),
    pong: (ws, payload) => connectionOf(ws).ponged(Buffer.from(payload).toString('latin1')),
    close: (ws) => {
      counters.add(Counter.webSockets, -1);
      counters.add(Counter.connectionsInUse, -1);
      // The library says that a connection was opened, but not that one which became a WebSocket was closed.
      counters.add(Counter.connections, -1);
      connectionOf(ws).closed();
    },
    // Its own limit would drop messages, and so leave a hole. What waits is bounded by what we send (I7).
    maxBackpressure: 0,
    maxPayloadLength: edge.config.bodyBytesMax,
    // Counts from the last that came from the peer: our pings alone do not keep a dead one.
    idleTimeout: Math.max(IDLE_SECONDS_MIN, idleSeconds),
    sendPingsAutomatically: false,
  });
}

/**
 * At once, and who asks is found out afterwards: a page cannot see a 401; and the library may cut a connection that is
 * upgraded later than in this handler, for it takes it for the response whose place in memory it was given.
 */
function shakeHands(exchange: Exchange, req: HttpRequest, context: us_socket_context_t): void {
  const { edge, address, res } = exchange;
  refuseWhileDraining(edge);
  if (
    req.getHeader('upgrade').toLowerCase() !== 'websocket' ||
    req.getHeader('sec-websocket-version') !== VERSION
  ) {
    throw badHandshake();
  }
  if (!edge.cors.mayConnect(req.getHeader('origin'), req.getHeader('host'))) {
    throw new RequestError('origin_not_allowed');
  }
  const { protocol, format } = negotiateProtocol(req.getHeader('sec-websocket-protocol'));
  const connection = new WebSocketConnection(edge, {
    name: req.getParameter(0),
    lastEventId: req.getHeader('last-event-id'),
    query: req.getQuery(),
    format,
    identify: edge.access.identify(req),
    address,
  });
  const key = req.getHeader('sec-websocket-key');
  const extensions = req.getHeader('sec-websocket-extensions');
  res.cork(() => res.upgrade<UserData>({ connection }, key, protocol, extensions, context));
}

/** For a request that asks for a WebSocket without what a handshake has. */
export function badHandshake(): RequestError {
  return new RequestError(
    'invalid_handshake',
    undefined,
    {},
    { 'Sec-WebSocket-Version': VERSION, Upgrade: 'websocket' },
  );
}

/** The first that is offered and known. Who offers none gets JSON, and no protocol in the answer. */
function negotiateProtocol(header: string): { protocol: string; format: MessageFormat } {
  if (header === '') return { protocol: '', format: 'json' };
  for (const offered of header.split(',', Object.keys(PROTOCOLS).length * 8)) {
    const protocol = offered.trim();
    const format = Object.hasOwn(PROTOCOLS, protocol) ? PROTOCOLS[protocol] : undefined;
    if (format !== undefined) return { protocol, format };
  }
  throw new RequestError('invalid_handshake', 'no known subprotocol is offered', {
    supported: Object.keys(PROTOCOLS),
  });
}

function connectionOf(ws: WebSocket<UserData>): WebSocketConnection {
  return ws.getUserData().connection;
}
