/**
 * The log thread: commits what the edges append, in groups.
 */

import { randomBytes } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';
import { parentPort, workerData } from 'node:worker_threads';
import { assert } from '../../assert.js';
import { createLogger } from '../../log.js';
import { LogStatus } from '../../ring/log-status.js';
import { Rings } from '../../ring/rings.js';
import { Wakes } from '../../ring/wake-queue.js';
import { LogError, type LoggedStream } from '../../storage/event-log.js';
import { openLmdbLog } from '../../storage/lmdb/open-lmdb-log.js';
import { UnsyncedMark } from '../../storage/lmdb/unsynced-mark.js';
import { SteadyClock } from '../steady-clock.js';
import { CommitLoop } from './commit-loop.js';
import { LogDuty } from './log-duty.js';
import type { LogCommand, LogMessage, LogSetup } from './log-messages.js';
import { renewStreams } from './renew-streams.js';

const RETENTION_MS = 1000;

assert(parentPort !== null, 'the log runs in a thread of its own');
const port = parentPort;
const setup = workerData as LogSetup;
const { config } = setup;
const logger = createLogger({ level: config.logLevel, thread: 'log' });
const rings = new Rings(setup.rings);
const wakes = new Wakes(setup.wakes, rings);
const log = openLmdbLog({ directory: setup.directory, syncEachCommit: config.fsync === 'always' });
const clock = new SteadyClock(setup.clockOrigin);
const mark = new UnsyncedMark(setup.directory);
const duty = new LogDuty({
  wakes,
  loop: new CommitLoop({
    rings,
    wakes,
    log,
    status: new LogStatus(setup.status),
    logBytesMax: config.logBytesMax,
    nowMs: clock.now,
    nowSeconds: () => performance.now() / 1000,
  }),
  send,
  sleep,
  commitFailed: ({ fault, message }) => logger.error({ fault, reason: message }, 'commit failed'),
});

port.on('message', (command: LogCommand) => duty.received(command));
send({ kind: 'loaded', streams: await load() });
const retention = setInterval(() => duty.applyRetention(), RETENTION_MS);
const syncing = config.fsync === 'interval' ? setInterval(sync, config.fsyncIntervalMs) : null;
await duty.run();
await end();

async function load(): Promise<LoggedStream[]> {
  const mayHaveLost = mark.mayHaveLost;
  let streams = [...log.load()];
  // If the machine's clock was set back, time goes on from the newest event: the next must not be older than that one, and
  // those that are there must go on ageing.
  clock.catchUp(log.newestAtMs());
  if (mayHaveLost && streams.length > 0) {
    logger.warn(
      { streams: streams.length },
      'the machine went down before all was on the disk: streams begin anew',
    );
    streams = await renewStreams(log, streams, randomBytes);
  }
  if (config.fsync === 'interval') mark.set();
  else mark.clear();
  return streams;
}

async function end(): Promise<void> {
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

function sync(): void {
  log.sync().catch((error: unknown) => {
    if (!(error instanceof LogError)) throw error;
    logger.error({ fault: error.fault, reason: error.message }, 'sync failed');
  });
}

function send(message: LogMessage): void {
  port.postMessage(message);
}
