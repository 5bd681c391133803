import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type BrokerProcess, startBroker } from './broker-process.js';
import type { BrokersOptions } from './brokers.js';
import { findProgram, freePort, type RunningPeer, startProgram } from './peers/peer.js';

/** So many brokers on a log that so many NATS servers keep, each event on all of them. */
export interface SharedLogSetup {
  readonly brokers: number;
  readonly servers: number;
}

export interface RunningSharedLog {
  readonly brokers: readonly BrokerProcess[];
  /** Of brokers and servers. */
  readonly pids: readonly number[];
}

interface Running extends RunningSharedLog {
  readonly setup: SharedLogSetup;
  stop(): Promise<void>;
}

/** Null if it can run here, or what is missing. */
export function missingForSharedLogs(): string | null {
  return findProgram('BENCH_NATS', 'nats-server') === null ? 'nats-server (Debian: nats-server)' : null;
}

/** Brokers that share a log, one set-up at a time: what idles beside it would take part of its core. */
export class SharedLogs {
  readonly #options: BrokersOptions;
  #running: Running | null = null;

  constructor(options: BrokersOptions) {
    this.#options = options;
  }

  async running(setup: SharedLogSetup): Promise<RunningSharedLog> {
    if (this.#running?.setup === setup) return this.#running;
    await this.stop();
    this.#running = await this.#start(setup);
    return this.#running;
  }

  async stop(): Promise<void> {
    await this.#running?.stop();
    this.#running = null;
  }

  async #start(setup: SharedLogSetup): Promise<Running> {
    const { mainFile, core, dataParent, warmUp } = this.#options;
    const directory = mkdtempSync(join(dataParent ?? tmpdir(), 'gapless-bench-'));
    const servers = await startServers(setup.servers, { directory, core });
    const log = servers.map(({ port }) => `nats://127.0.0.1:${port}`).join(',');
    const flags = ['--log', log, '--log-replicas', String(setup.servers), '--threads', '1'];
    const brokers: BrokerProcess[] = [];
    // The first makes the log.
    for (let index = 0; index < setup.brokers; index++) {
      brokers.push(await startBroker({ mainFile, core, flags, token: null }));
    }
    for (const broker of brokers) await warmUp(broker);
    return {
      setup,
      brokers,
      pids: [...brokers.map(({ pid }) => pid), ...servers.flatMap(({ pids }) => pids)],
      async stop() {
        await Promise.all(brokers.map((broker) => broker.stop()));
        await Promise.all(servers.map((server) => server.stop()));
        rmSync(directory, { recursive: true, force: true });
      },
    };
  }
}

/** As they are when nobody says otherwise: what was acknowledged reaches the disk within a minute or two. */
async function startServers(
  count: number,
  { directory, core }: { directory: string; core: number | null },
): Promise<RunningPeer[]> {
  const ports = await portsFor(2 * count);
  const routes = ports.slice(count).map((port) => `nats://127.0.0.1:${port}`);
  const cluster = (index: number): string[] =>
    count === 1
      ? []
      : ['--cluster_name', 'bench', '--cluster', routes[index] as string, '--routes', routes.join(',')];
  return Promise.all(
    ports.slice(0, count).map((port, index) => {
      const own = ['-n', `n${index}`, '-a', '127.0.0.1', '-p', String(port), '-l', '/dev/null'];
      const store = ['-js', '-sd', join(directory, `n${index}`)];
      const program = findProgram('BENCH_NATS', 'nats-server') as string;
      return startProgram({
        command: [program, ...own, ...store, ...cluster(index)],
        core,
        port,
        env: core === null ? {} : { GOMAXPROCS: '1' },
      });
    }),
  );
}

async function portsFor(count: number): Promise<number[]> {
  const ports = new Set<number>();
  while (ports.size < count) ports.add(await freePort());
  return [...ports];
}
