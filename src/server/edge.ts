/**
 * An edge thread: its parts with real sockets, and the clocks that drive them.
 */

import uWS, { type us_listen_socket } from 'uWebSockets.js';
import { monitorEventLoopDelay } from 'node:perf_hooks';
import { parentPort, workerData } from 'node:worker_threads';
import { assert } from '../assert.js';
import type { KeyMaterial } from '../auth/key-material.js';
import { createLogger } from '../log.js';
import { Counter } from '../ring/counters.js';
import { addRoutes } from '../transport/app.js';
import { assembleEdge } from './edge-assembly.js';
import { drainEdge } from './edge-drain.js';
import { EdgeLink } from './edge-link.js';
import type { EdgeCommand, EdgeSetup } from './messages.js';
import { SteadyClock } from './steady-clock.js';

const SAMPLE_MS = 1000;
const LOOP_DELAY_RESOLUTION_MS = 10;

assert(parentPort !== null, 'an edge runs in a thread of its own');
const link = new EdgeLink(parentPort);
const setup = workerData as EdgeSetup;
const { config, edge } = setup;
const log = createLogger({ level: config.logLevel, thread: `edge-${edge}` });
const services = assembleEdge({
  setup,
  link,
  log,
  now: new SteadyClock(setup.clockOrigin).now,
  random: Math.random,
  defer: setImmediate,
});
const { broker, counters, access, sessions } = services;

const app = uWS.App();
addRoutes(app, services);
let listening: us_listen_socket | false = false;
const delay = monitorEventLoopDelay({ resolution: LOOP_DELAY_RESOLUTION_MS });
delay.enable();
const ticking = setInterval(() => broker.tick(), broker.tickIntervalMs);
const sampling = setInterval(sample, SAMPLE_MS);

parentPort.on('message', (command: EdgeCommand) => {
  switch (command.kind) {
    case 'answer':
      return link.answered(command);
    case 'listen':
      return listen(command.port);
    case 'report':
      return link.send({ kind: 'report', id: command.id, lags: broker.lags() });
    case 'keys':
      return useKeys(command.keys);
    case 'drain':
      return void drainEdge(services, command.drainMs).then(() => link.send({ kind: 'drained' }));
    case 'stop':
      return stop();
  }
});

// A thread that dies with sockets open takes the process down without a word; this one says why first.
process.on('uncaughtException', (error) => {
  log.fatal({ err: error }, 'edge failed');
  link.send({ kind: 'failed', message: error.message, stack: error.stack });
  stop();
});

function listen(port: number): void {
  app.listen(config.host, port, (socket) => {
    listening = socket;
    link.send({ kind: socket ? 'listening' : 'listenFailed' });
  });
}

function useKeys(keys: KeyMaterial): void {
  counters.add(Counter.subscribersExpired, sessions.endWithout(access.useKeys(keys)));
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
function stop(): void {
  clearInterval(ticking);
  clearInterval(sampling);
  delay.disable();
  if (listening) uWS.us_listen_socket_close(listening);
  listening = false;
  app.close();
  link.send({ kind: 'stopped' });
}
