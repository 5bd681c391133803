/**
 * The log thread: commits what the edges append, in groups.
 */

import { setTimeout as sleep } from 'node:timers/promises';
import { parentPort, workerData } from 'node:worker_threads';
import { assert } from '../assert.js';
import { createLogger } from '../log.js';
import { LogStatus } from '../ring/log-status.js';
import { Rings } from '../ring/rings.js';
import { LOG_EDGE, Wakes } from '../ring/wake-queue.js';
import { LogError, type LoggedStream } from '../storage/event-log.js';
import { openLmdbLog } from '../storage/lmdb-log.js';
import { UnsyncedMark } from '../storage/unsynced-mark.js';
import { CommitLoop } from './commit-loop.js';
import type { LogCommand, LogMessage, LogSetup } from './log-messages.js';
import { renewStreams } from './renew-streams.js';

/** How long a log that cannot commit is left alone before it is asked again. */
const RETRY_MS = 250;
const RETENTION_MS = 1000;

assert(parentPort !== null, 'the log runs in a thread of its own');
const port = parentPort;
const setup = workerData as LogSetup;
const { config } = setup;
const logger = createLogger({ level: config.logLevel, thread: 'log' });
const rings = new Rings(setup.rings);
const wakes = new Wakes(setup.wakes, rings);
const log = openLmdbLog({ directory: setup.directory, syncEachCommit: config.fsync === 'always' });
const mark = new UnsyncedMark(setup.directory);
const loop = new CommitLoop({
  rings,
  wakes,
  log,
  status: new LogStatus(setup.status),
  nowMs: Date.now,
  nowSeconds: () => performance.now() / 1000,
});

let stopping = false;
/** Whether an edge's append will nudge the loop: one waiter at a time, however often a command ends its wait. */
let waiting = false;
/** Ends the wait of the loop. */
let nudge: () => void = () => undefined;

port.on('message', (command: LogCommand) => {
  obey(command);
  nudge();
});
send({ kind: 'loaded', streams: await load() });
const retention = setInterval(() => {
  loop.applyRetention();
  nudge();
}, RETENTION_MS);
const syncing = config.fsync === 'interval' ? setInterval(sync, config.fsyncIntervalMs) : null;
await run();

function obey(command: LogCommand): void {
  switch (command.kind) {
    case 'adopt':
      for (const { handle, logId, head, ages } of command.streams)
        loop.adopt(handle, { id: logId, head, ages });
      break;
    case 'create':
      loop.create(command.handle, command.stream, (logId) => send({ kind: 'done', id: command.id, logId }));
      break;
    case 'close':
      loop.close(command.slot, () => send({ kind: 'done', id: command.id, logId: null }));
      break;
    case 'remove':
      loop.remove(command.slot, () => send({ kind: 'done', id: command.id, logId: null }));
      break;
    case 'stop':
      stopping = true;
  }
}

async function load(): Promise<LoggedStream[]> {
  const mayHaveLost = mark.mayHaveLost;
  let streams = [...log.load()];
  if (mayHaveLost && streams.length > 0) {
    logger.warn(
      { streams: streams.length },
      'the machine went down before all was on the disk: streams begin anew',
    );
    streams = await renewStreams(log, streams);
  }
  if (config.fsync === 'interval') mark.set();
  else mark.clear();
  return streams;
}

async function run(): Promise<void> {
  for (;;) {
    const ticket = wakes.ticket(LOG_EDGE);
    try {
      if (await loop.commit()) continue;
    } catch (error) {
      if (!(error instanceof LogError)) throw error;
      logger.error({ fault: error.fault, reason: error.message }, 'commit failed');
      if (stopping) break;
      await sleep(RETRY_MS);
      continue;
    }
    if (stopping) break;
    await news(ticket);
  }
  clearInterval(retention);
  if (syncing !== null) clearInterval(syncing);
  if (config.fsync === 'interval') {
    await log.sync();
    mark.clear();
  }
  await log.dispose();
  send({ kind: 'stopped' });
  port.close();
}

/** Resolves when an edge has appended something since the ticket was read, or a command has come. */
async function news(ticket: number): Promise<void> {
  if (!waiting) {
    const woken = wakes.wait(LOG_EDGE, ticket);
    if (woken === null) return;
    waiting = true;
    void woken.then(() => {
      waiting = false;
      nudge();
    });
  }
  await new Promise<void>((resolve) => {
    nudge = resolve;
  });
}

function sync(): void {
  log.sync().catch((error: unknown) => {
    if (!(error instanceof LogError)) throw error;
    logger.error({ fault: error.fault, reason: error.message }, 'sync failed');
  });
}

function send(message: LogMessage): void {
  port.postMessage(message);
}
