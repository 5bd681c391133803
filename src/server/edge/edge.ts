/**
 * An edge thread: its parts with real sockets, and the clocks that drive them.
 */

import { monitorEventLoopDelay } from 'node:perf_hooks';
import { parentPort, workerData } from 'node:worker_threads';
import { assert } from '../../assert.js';
import type { KeyMaterial } from '../../auth/key-material.js';
import type { Config } from '../../config/schema.js';
import { loadConsole } from '../../console/assets.js';
import { createLogger } from '../../log.js';
import { Counter } from '../../ring/counters.js';
import { addRoutes } from '../../transport/app.js';
import { McpLink } from '../mcp/mcp-link.js';
import type { EdgeCommand, EdgeSetup } from '../messages.js';
import { SteadyClock } from '../steady-clock.js';
import { assembleEdge } from './edge-assembly.js';
import { drainEdge } from './edge-drain.js';
import { EdgeLink } from './edge-link.js';
import { reporters } from './edge-report.js';
import { Listener, type ListenerOptions } from './listener.js';

const SAMPLE_MS = 1000;
const LOOP_DELAY_RESOLUTION_MS = 10;
/** How often is looked whether the loop is late; see pressure.ts. */
const WATCH_MS = 100;
/** How often the coordinator is told what happened. */
const HAND_OVER_MS = 200;

assert(parentPort !== null, 'an edge runs in a thread of its own');
const link = new EdgeLink(parentPort);
const setup = workerData as EdgeSetup;
const { config, edge } = setup;
const log = createLogger({ level: config.logLevel, thread: `edge-${edge}` });
const services = assembleEdge({
  setup,
  link,
  mcp: setup.mcp === null ? null : new McpLink(setup.mcp, edge),
  log,
  console: config.console ? loadConsole(setup.keys !== null) : null,
  now: new SteadyClock(setup.clockOrigin).now,
  random: Math.random,
  defer: setImmediate,
});
const { activity, broker, counters, access, followers, limits, sessions } = services;
const report = reporters(services);

const listener = new Listener({
  host: config.host,
  tls: tlsOf(config),
  addRoutes: (app) => addRoutes(app, services),
});
const delay = monitorEventLoopDelay({ resolution: LOOP_DELAY_RESOLUTION_MS });
delay.enable();
const ticking = setInterval(() => broker.tick(), broker.tickIntervalMs);
const watching = setInterval(watchLoop, WATCH_MS);
let watchedAtMs = performance.now();
const sampling = setInterval(sample, SAMPLE_MS);
const handingOver = setInterval(handOver, HAND_OVER_MS);

parentPort.on('message', (command: EdgeCommand) => {
  switch (command.kind) {
    case 'answer':
      return link.answered(command);
    case 'answers':
      for (const answer of command.answers) link.answered(answer);
      return;
    case 'listen':
      return link.send({ kind: listener.listen(command.port) ? 'listening' : 'listenFailed' });
    case 'report':
      return link.send({
        kind: 'report',
        id: command.id,
        report: report[command.topic](command.ask as never),
      });
    case 'streamMade':
      return followers.made(command.ref);
    case 'releaseCursor':
      return followers.release(command.holder);
    case 'renewCertificate':
      return renewCertificate();
    case 'keys':
      return useKeys(command.keys);
    case 'drain':
      return void drainEdge(services, command.drainMs).then(() => link.send({ kind: 'drained' }));
    case 'stop':
      return void stop();
  }
});

// A thread that dies with sockets open takes the process down without a word; this one says why first.
process.on('uncaughtException', (error) => {
  log.fatal({ err: error }, 'edge failed');
  link.send({ kind: 'failed', message: error.message, stack: error.stack });
  void stop();
});

function tlsOf({ tlsCertFile, tlsKeyFile }: Config): ListenerOptions['tls'] {
  return tlsCertFile === null || tlsKeyFile === null ? null : { certFile: tlsCertFile, keyFile: tlsKeyFile };
}

function renewCertificate(): void {
  try {
    listener.renewCertificate();
  } catch (error) {
    log.error({ reason: (error as Error).message }, 'certificate not renewed');
  }
}

function useKeys(keys: KeyMaterial): void {
  counters.add(Counter.subscribersExpired, sessions.endWithout(access.useKeys(keys)));
}

function watchLoop(): void {
  const nowMs = performance.now();
  limits.observeDelay(nowMs - watchedAtMs - WATCH_MS);
  watchedAtMs = nowMs;
}

function handOver(): void {
  const batch = activity.take();
  if (batch !== null) link.send({ kind: 'activity', batch });
}

function sample(): void {
  counters.add(Counter.subscribersExpired, sessions.endExpired(Date.now()));
  broker.sampleLag();
  // What is recorded is the time between two ticks of a timer; what is over its interval is delay.
  const seconds = (nanoseconds: number): number =>
    Math.max(0, nanoseconds / 1e9 - LOOP_DELAY_RESOLUTION_MS / 1e3);
  counters.set(Counter.loopDelayP50Seconds, seconds(delay.percentile(50)));
  counters.set(Counter.loopDelayP99Seconds, seconds(delay.percentile(99)));
  counters.set(Counter.loopDelayMaxSeconds, seconds(delay.max));
  delay.reset();
}

/** Closes everything, or the end of the thread would abort the process. */
async function stop(): Promise<void> {
  clearInterval(ticking);
  clearInterval(watching);
  clearInterval(sampling);
  clearInterval(handingOver);
  delay.disable();
  await listener.close(() => counters.get(Counter.connections));
  link.send({ kind: 'stopped' });
}
