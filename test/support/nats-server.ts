import assert from 'node:assert/strict';
import { type ChildProcess, spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { TestContext } from 'node:test';
import { withDeadline } from './deadline.js';
import { makeDirectory, removeDirectory } from './durable-broker.js';
import { freePort } from './free-port.js';
import { standStill } from './stand-still.js';

const PROGRAM = 'nats-server';
const ASKED = spawnSync(PROGRAM, ['--version'], { encoding: 'utf8' });

/** Of the program, as `2.9.10`; empty: it is not installed. */
export const NATS_VERSION = /: v(\S+)/.exec(ASKED.stdout ?? '')?.[1] ?? '';

/**
 * What a test with a NATS server is skipped for, as an option of `describe`: the program is not installed. Where
 * everything has to be tested nothing is skipped, and such a test fails.
 */
export const NATS_SKIP: string | false =
  ASKED.status === 0 || process.env.CI !== undefined
    ? false
    : 'nats-server is not installed (Debian: apt-get install nats-server)';

/** A message as large as the largest body that a broker takes. */
const MAX_PAYLOAD = 16 * 1024 * 1024;

/** Servers that outlive their test file would hold ports: none does, however the file ends. */
const running = new Set<ChildProcess>();
process.once('exit', () => {
  for (const child of running) child.kill('SIGKILL');
});

/** A real NATS server with JetStream, in a process and a directory of its own: one port, process after process. */
export class NatsServer {
  /** What is run when it is started again: another version, for a test by hand. */
  program = PROGRAM;
  readonly #directory: string;
  #child: ChildProcess | null = null;

  constructor(
    readonly port: number,
    directory: string,
  ) {
    this.#directory = directory;
  }

  /** Process and directory are gone after the test. */
  static async start(
    context: Pick<TestContext, 'after'>,
    config = '',
    program = PROGRAM,
  ): Promise<NatsServer> {
    const directory = makeDirectory();
    const server = new NatsServer(await freePort(), directory);
    server.program = program;
    server.#configure(config);
    return server.#begin(context);
  }

  /** Several that replicate among each other. Who asks them soon may have to wait for them to find each other. */
  static async startCluster(
    context: Pick<TestContext, 'after'>,
    count: number,
    programs: readonly string[] = [],
  ): Promise<NatsServer[]> {
    const ports = await Promise.all(Array.from({ length: count }, freePort));
    const routes = ports.map((port) => `"nats://127.0.0.1:${port}"`).join(', ');
    return Promise.all(
      ports.map((port, index) =>
        NatsServer.start(
          context,
          `server_name: n${index}\ncluster { name: test, listen: "127.0.0.1:${port}", routes: [${routes}] }`,
          programs[index],
        ),
      ),
    );
  }

  /** As many, with a configuration that somebody wrote for other hosts: addresses and directories are those of a test. */
  static async startClusterOf(
    context: Pick<TestContext, 'after'>,
    config: string,
    count: number,
  ): Promise<NatsServer[]> {
    const ports = await Promise.all(Array.from({ length: count }, freePort));
    const routes = ports.map((port) => `"nats://127.0.0.1:${port}"`).join(', ');
    const text = readFileSync(config, 'utf8');
    return Promise.all(
      ports.map(async (port, index) => {
        const directory = makeDirectory();
        const server = new NatsServer(await freePort(), directory);
        const own = text
          .replace('"0.0.0.0:4222"', `"127.0.0.1:${server.port}"`)
          .replace('"0.0.0.0:6222"', `"127.0.0.1:${port}"`)
          .replace('"/data"', JSON.stringify(directory))
          .replace(/routes: \[[^\]]*\]/, `routes: [ ${routes} ]`);
        writeFileSync(server.#configFile, `server_name: n${index}\n${own}`);
        return server.#begin(context);
      }),
    );
  }

  get url(): string {
    return `nats://127.0.0.1:${this.port}`;
  }

  get #configFile(): string {
    return join(this.#directory, 'server.conf');
  }

  /** @param config what it has beside what all of them have; without it, as before. */
  async startAgain(config?: string): Promise<void> {
    if (config !== undefined) this.#configure(config);
    const child = spawn(this.program, ['-c', this.#configFile], { stdio: ['ignore', 'ignore', 'pipe'] });
    running.add(child);
    child.once('exit', () => running.delete(child));
    this.#child = child;
    let said = '';
    const ready = new Promise<void>((resolve, reject) => {
      child.stderr?.setEncoding('utf8').on('data', (text: string) => {
        said += text;
        if (said.includes('Server is ready')) resolve();
      });
      child.once('exit', () => reject(new Error(`the NATS server ended: ${said}`)));
      child.once('error', reject);
    });
    await withDeadline('the NATS server to be ready', ready);
  }

  async #begin(context: Pick<TestContext, 'after'>): Promise<this> {
    context.after(async () => {
      await this.kill();
      removeDirectory(this.#directory);
    });
    await this.startAgain();
    return this;
  }

  #configure(config: string): void {
    writeFileSync(
      this.#configFile,
      [
        `listen: "127.0.0.1:${this.port}"`,
        `max_payload: ${MAX_PAYLOAD}`,
        `jetstream { store_dir: ${JSON.stringify(this.#directory)} }`,
        config,
      ].join('\n'),
    );
  }

  /** Stops it as it is meant to be stopped. */
  stop(): Promise<void> {
    return this.#end('SIGTERM');
  }

  kill(): Promise<void> {
    return this.#end('SIGKILL');
  }

  signal(signal: NodeJS.Signals): void {
    this.#child?.kill(signal);
  }

  /** As SIGSTOP does, and resolves when none of its threads runs on. */
  async standStill(): Promise<void> {
    assert.ok(this.#child?.pid !== undefined);
    await standStill(this.#child.pid);
  }

  /** Whatever it kept is gone. While it is stopped. */
  forgetAll(): void {
    removeDirectory(join(this.#directory, 'jetstream'));
  }

  async #end(signal: NodeJS.Signals): Promise<void> {
    const child = this.#child;
    this.#child = null;
    if (child === null || child.exitCode !== null || child.signalCode !== null) return;
    const ended = once(child, 'exit');
    child.kill(signal);
    await withDeadline('the NATS server to end', ended);
  }
}
