import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { findProgram, freePort, startProgram } from './peer.js';
import type { ServerPeer } from './server-peer.js';

/** Connection manager, proxy and handler. */
const PROCESSES = 3;
const READY_TRIES_MAX = 200;
const POLL_MS = 50;

/**
 * Pushpin, its three processes together on the core. Its own test route answers subscribers with a held stream, so there
 * is no backend whose time would count. Events are published as people do it, by HTTP at its control port, which
 * closes each connection after its answer. Its limit of 2500 deliveries a second is off; so are its log and its look
 * for updates.
 */
export const pushpin: ServerPeer = {
  name: 'pushpin',
  missing: () => (program() === null ? 'pushpin (Debian: pushpin)' : null),
  async start(core) {
    const [port, publishPort] = [await freePort(), await freePort()];
    const directory = mkdtempSync(join(tmpdir(), 'gapless-bench-pushpin-'));
    mkdirSync(join(directory, 'run'));
    mkdirSync(join(directory, 'log'));
    writeFileSync(join(directory, 'routes'), '* test\n');
    const file = join(directory, 'pushpin.conf');
    writeFileSync(file, configuration(directory, { port, publishPort }));
    const command = [program() as string, `--config=${file}`];
    const running = await startProgram({ command, core, port, workers: PROCESSES });
    await untilItServes(port);
    return {
      ...running,
      publishPort,
      async stop() {
        await running.stop();
        rmSync(directory, { recursive: true, force: true });
      },
    };
  },
  place: () => ({
    publishPath: '/publish/',
    subscribePath: '/stream',
    // The channel of the test route.
    body: {
      before: '{"items":[{"channel":"test","formats":{"http-stream":{"content":"data: ',
      after: '\\n\\n"}}}]}',
    },
    // It refuses some where more come at once.
    opening: 8,
  }),
};

/** It takes connections before its three processes have found each other. */
async function untilItServes(port: number): Promise<void> {
  for (let tries = 0; tries < READY_TRIES_MAX; tries++) {
    const answer = await fetch(`http://127.0.0.1:${port}/stream`).catch(() => null);
    await answer?.body?.cancel();
    if (answer?.status === 200) return;
    await sleep(POLL_MS);
  }
  throw new Error('Pushpin serves nobody');
}

function program(): string | null {
  return findProgram('BENCH_PUSHPIN', 'pushpin');
}

function configuration(directory: string, ports: { port: number; publishPort: number }): string {
  return `[global]
include={libdir}/internal.conf
rundir=${directory}/run
ipc_prefix=bench-

[runner]
services=condure,pushpin-proxy,pushpin-handler
http_port=127.0.0.1:${ports.port}
logdir=${directory}/log
log_level=0
client_maxconn=19000

[proxy]
routesfile=${directory}/routes
updates_check=off

[handler]
push_in_spec=ipc://${directory}/run/push-in
push_in_http_addr=127.0.0.1
push_in_http_port=${ports.publishPort}
command_spec=ipc://${directory}/run/command
message_rate=0
message_hwm=1000000
`;
}
