/**
 * The thread of the MCP front: its parts with real connections to the servers, and the clock that drives it.
 */

import { randomBytes } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';
import { type MessagePort, parentPort, workerData } from 'node:worker_threads';
import { assert } from '../../assert.js';
import { RequestError } from '../../errors.js';
import { createLogger } from '../../log.js';
import { refusal } from '../../mcp/answers.js';
import { EventIds } from '../../mcp/event-id.js';
import { Front } from '../../mcp/front.js';
import { FAILED_COUNT, FrontCount, FrontCounts } from '../../mcp/front-counts.js';
import { LIMIT_REACHED, type RpcError } from '../../mcp/json-rpc.js';
import type { FromEdge, ToEdge, Verdict } from '../../mcp/messages.js';
import { type Mount, readMount } from '../../mcp/mount.js';
import { restoreSessions } from '../../mcp/session/restore.js';
import type { Session } from '../../mcp/session/session.js';
import { StatelessCall } from '../../mcp/stateless/stateless-call.js';
import { Backlog } from '../../mcp/stream/backlog.js';
import { HttpTarget } from '../../mcp/upstream/http-request.js';
import { HttpUpstream } from '../../mcp/upstream/http-upstream.js';
import { StdioUpstream } from '../../mcp/upstream/stdio-upstream.js';
import type { Upstream, UpstreamSession } from '../../mcp/upstream/upstream.js';
import { LineLimit } from '../../transport/admission/line-limit.js';
import { EdgeLink } from '../edge/edge-link.js';
import { SteadyClock } from '../steady-clock.js';
import { BrokerRecords } from './broker-records.js';
import { BrokerStreams } from './broker-streams.js';
import type { McpCommand, McpMessage, McpSetup } from './mcp-thread.js';
import { edgeOfReader } from './reader-name.js';
import { ReplicatedRecords } from './replicated-records.js';

const SECRET_BYTES = 32;
const SESSION_ID_BYTES = 18;
const SWEEP_MS = 500;
const BEGIN_AGAIN_MS = 200;
/** Of messages that wait for room, over all streams. */
const WAITING_CHARACTERS_MAX = 64 * 1024 * 1024;
/** How long servers may take to hear that their sessions are over. */
const STOP_MS_MAX = 1500;
/** Characters that are logged of a line which a server writes for people. */
const SAID_LENGTH_MAX = 1000;

assert(parentPort !== null, 'the MCP front runs in a thread of its own');
const port = parentPort;
const setup = workerData as McpSetup;
const { config } = setup;
const log = createLogger({ level: config.logLevel, thread: 'mcp' });
const clock = new SteadyClock(setup.clockOrigin);
const link = new EdgeLink({ postMessage: (message) => port.postMessage(message) });
const mounts = config.mcp.map(readMount);
const targets = mounts.map(({ target }) =>
  target.kind === 'http' ? new HttpTarget(target.url, config.mcpSilenceMs) : null,
);

const counts = new FrontCounts(setup.counts);
const lines = new LineLimit(clock.now, (count) => log.info({ count }, 'failed calls not logged'));

const streams = new BrokerStreams({ setup, link, now: clock.now, counts });
let front: Front | null = null;
/** Why a shared log does not take what the front begins with. */
let fault: RequestError | null = null;
let sweeping: NodeJS.Timeout | undefined;
let known: () => void = () => undefined;
/** Settles when the front has begun, or cannot for now. */
const isKnown = new Promise<void>((resolve) => {
  known = resolve;
});

// Answers of the coordinator are waited for below, and who stops meanwhile waits for the end of that.
port.on('message', (command: McpCommand) => {
  if (command.kind === 'answer') return link.answered(command);
  return void isKnown.then(stop);
});
for (const edge of setup.edges) edge.on('message', (message: FromEdge) => void received(edge, message));

process.on('uncaughtException', (error) => {
  log.fatal({ err: error }, 'the MCP front failed');
  tell({ kind: 'failed', message: error.message, stack: error.stack });
});

const records = config.dataDir === null ? null : new BrokerRecords({ link, streams, now: clock.now });
const sharedRecords =
  streams.shared === null
    ? null
    : new ReplicatedRecords({ link, streams, sessionTtlMs: config.mcpSessionTtlMs });
await untilTaken(async () => streams.shared?.begin());
const left = records === null ? [] : await link.ask('ownStreams', {});
const secret =
  (await untilTaken(async () => sharedRecords?.secret())) ??
  (await records?.secret(left)) ??
  randomBytes(SECRET_BYTES);
const begun = new Front({
  streams,
  records: sharedRecords ?? records,
  sharedRecords,
  counts,
  backlog: new Backlog({ waitMs: config.mcpWaitMs, charactersMax: WAITING_CHARACTERS_MAX, counts }),
  paths: mounts.map(({ path }) => path),
  ids: new EventIds(secret),
  connect,
  connectStateless: (mount) => {
    const target = targets[mount];
    return target ? new StatelessCall({ target, messageBytesMax: config.bodyBytesMax }) : null;
  },
  endReader: (reader) => send(setup.edges[edgeOfReader(reader)] as MessagePort, { kind: 'end', reader }),
  sessionsMax: config.mcpSessionsMax,
  callsMax: config.mcpCallsMax,
  sessionTtlMs: { streamable: config.mcpSessionTtlMs, sse: config.mcpTtlMs },
  responseGraceMs: config.mcpResponseGraceMs,
  newSessionId: () => randomBytes(SESSION_ID_BYTES).toString('base64url'),
  failed: noteFailed,
  now: clock.now,
});

if (records !== null) {
  const restored = await restoreSessions({ streams, ...records.adopt(left) }, (record) =>
    begun.restore(record),
  );
  if (restored.sessions > 0) log.info(restored, 'sessions taken up');
}
if (fault !== null) log.info('the log takes what MCP begins with');
front = begun;
sweeping = setInterval(() => {
  streams.keep();
  records?.keep();
  begun.sweep();
}, SWEEP_MS);
known();

/** Asks a shared log until it does what it is asked for. Requests are refused meanwhile, and who stops need not wait. */
async function untilTaken<T>(ask: () => Promise<T>): Promise<T> {
  for (;;) {
    try {
      return await ask();
    } catch (error) {
      if (!(error instanceof RequestError)) throw error;
      if (fault === null) log.warn({ err: error }, 'the log takes nothing yet: requests of MCP are refused');
      fault = error;
      known();
      await sleep(BEGIN_AGAIN_MS);
    }
  }
}

/** What comes before the front has begun waits for that, unless it may take long. */
async function received(edge: MessagePort, message: FromEdge): Promise<void> {
  if (front === null) await isKnown;
  for (const each of message.left) front?.left(each);
  if (message.kind === 'left') return;
  const { id } = message;
  if (message.kind === 'report') return send(edge, { kind: 'report', id, servers: front?.report() ?? [] });
  const verdict = await (front?.handle(message.request) ?? refuse());
  send(edge, { kind: 'verdict', id, verdict });
}

function refuse(): Verdict {
  assert(fault !== null, 'a front that has not begun knows why');
  return refusal(fault.status, LIMIT_REACHED, fault.message);
}

function send(edge: MessagePort, message: ToEdge): void {
  edge.postMessage(message);
}

function tell(message: McpMessage): void {
  port.postMessage(message);
}

function connect(mount: number, session: () => Session, before: UpstreamSession | null): Upstream {
  const { target } = mounts[mount] as Mount;
  const shared = {
    messageBytesMax: config.bodyBytesMax,
    session: before,
    renewed: () => {
      counts.add(FrontCount.renewals, 1);
      log.info({ path: pathOf(session()), session: session().label }, 'session taken up anew');
      session().serverRequests.forget();
    },
  };
  if (target.kind === 'http') return new HttpUpstream({ ...shared, target: targets[mount] as HttpTarget });
  return new StdioUpstream({
    ...shared,
    command: target.command,
    silenceMs: config.mcpSilenceMs,
    noted: (text) =>
      log.debug({ path: pathOf(session()), said: text.slice(0, SAID_LENGTH_MAX) }, 'server says'),
  });
}

function noteFailed(session: Session, { code, data }: RpcError): void {
  const reason = data?.reason as keyof typeof FAILED_COUNT;
  counts.add(FAILED_COUNT[reason], 1);
  if (!lines.hasRoom) return;
  const { principal, label } = session;
  log.info({ path: pathOf(session), session: label, principal, code, ...data }, 'call failed');
}

function pathOf({ mount }: Session): string {
  return (mounts[mount] as Mount).path;
}

async function stop(): Promise<void> {
  clearInterval(sweeping);
  await Promise.race([front?.close(), sleep(STOP_MS_MAX)]);
  streams.removeAll();
  await Promise.race([streams.shared?.leave(), sleep(STOP_MS_MAX)]);
  for (const target of targets) target?.close();
  for (const edge of setup.edges) edge.close();
  tell({ kind: 'stopped' });
}
