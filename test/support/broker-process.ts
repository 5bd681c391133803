import assert from 'node:assert/strict';
import { type ChildProcess, spawn } from 'node:child_process';
import { readdir, readFile } from 'node:fs/promises';
import { after, before, describe } from 'node:test';
import { withDeadline } from './deadline.js';
import { freePort } from './free-port.js';
import { MAIN_FILE } from './paths.js';
import { standStill } from './stand-still.js';

export interface LogLine {
  level: number;
  msg?: string;
  [key: string]: unknown;
}

export interface Exit {
  code: number | null;
  signal: NodeJS.Signals | null;
}

/** How a broker is started, beside its flags. */
export interface LaunchOptions {
  flags: readonly string[];
  /** Added to the environment. */
  env?: Readonly<Record<string, string>>;
  /** Flags of Node, before the program. */
  nodeFlags?: readonly string[];
  /** Who it runs as; only root can say. */
  uid?: number;
  /** Files and sockets that it may have open at a time. */
  descriptorsMax?: number;
  /** How long it may take until it listens. */
  deadlineMs?: number;
}

const ERROR_LEVEL = 50;
/** Longer than others wait: the NATS servers of a shared log, which it waits for, begin at the same time. */
const START_MS_MAX = 60_000;
/** Nothing is shed: how busy the machine is must not decide what a test sees. Tests of shedding say when. */
const DEFAULT_FLAGS = {
  '--host': '127.0.0.1',
  '--drain-ms': '100',
  '--shed-replays-ms': '0',
  '--shed-subscriptions-ms': '0',
};

/** Brokers that outlive their test file would hold ports and memory: none does, however the file ends. */
const running = new Set<ChildProcess>();
process.once('exit', () => {
  for (const child of running) child.kill('SIGKILL');
});
for (const signal of ['SIGTERM', 'SIGINT'] as const) process.once(signal, () => process.exit(1));

/** What a test's own environment says, `GAPLESS_TEST_SEED` among it, is no setting of its brokers. */
function withoutSettings(env: NodeJS.ProcessEnv): NodeJS.ProcessEnv {
  return Object.fromEntries(Object.entries(env).filter(([name]) => !name.startsWith('GAPLESS_')));
}

/** The real program in a process of its own, on a port of its own. */
export class BrokerProcess {
  /** What it logged so far, one parsed line each. */
  readonly log: LogLine[] = [];
  stderr = '';
  readonly exited: Promise<Exit>;

  readonly #child: ChildProcess;
  readonly #options: LaunchOptions;
  readonly #listening: Promise<number>;
  #port = 0;
  #partialLine = '';
  #awaitedLines = 0;
  #settleListening: (port: number) => void = () => {};

  private constructor(options: LaunchOptions) {
    this.#options = options;
    const { flags, env, nodeFlags = [], uid, descriptorsMax } = options;
    const limit = descriptorsMax === undefined ? [] : ['prlimit', `--nofile=${descriptorsMax}`];
    const words = [...limit, process.execPath, ...nodeFlags, MAIN_FILE, 'serve', ...flags];
    this.#child = spawn(words[0] as string, words.slice(1), {
      stdio: ['ignore', 'pipe', 'pipe'],
      env: { ...withoutSettings(process.env), ...env },
      ...(uid === undefined ? {} : { uid }),
    });
    this.#listening = new Promise((resolve) => {
      this.#settleListening = resolve;
    });
    running.add(this.#child);
    this.#child.stdout?.setEncoding('utf8').on('data', (text: string) => this.#readLog(text));
    this.#child.stderr?.setEncoding('utf8').on('data', (text: string) => {
      this.stderr += text;
    });
    this.exited = new Promise((resolve) => {
      this.#child.once('close', (code, signal) => {
        running.delete(this.#child);
        resolve({ code, signal });
      });
    });
  }

  /** Starts `serve` on a free port of the loopback; resolves when it listens. Flags given here win over the defaults. */
  static start(...flags: string[]): Promise<BrokerProcess> {
    return BrokerProcess.launch({ flags });
  }

  /** Like `start`. Whatever the failure, no process is left behind. */
  static async launch(options: LaunchOptions): Promise<BrokerProcess> {
    const broker = new BrokerProcess({ ...options, flags: withDefaults(options.flags, await freePort()) });
    const failed = broker.exited.then(({ code }) => {
      throw new Error(
        `the broker ended (${code}) before it listened: ${broker.stderr}${JSON.stringify(broker.log)}`,
      );
    });
    try {
      const listening = Promise.race([broker.#listening, failed]);
      broker.#port = await withDeadline(
        'the broker to listen',
        listening,
        options.deadlineMs ?? START_MS_MAX,
      );
      return broker;
    } catch (error) {
      await broker.kill();
      throw error;
    }
  }

  /** Starts a broker that will not come up; resolves when it has ended, and fails if it listens. */
  static async launchInVain(options: LaunchOptions): Promise<{ exit: Exit; stderr: string }> {
    const broker = new BrokerProcess({ ...options, flags: withDefaults(options.flags, 0) });
    try {
      const listens = broker.#listening.then((port) => assert.fail(`it listens on port ${port}`));
      const ends = Promise.race([broker.exited, listens]);
      const exit = await withDeadline('the broker to end', ends, START_MS_MAX);
      return { exit, stderr: broker.stderr };
    } finally {
      if (broker.isRunning) await broker.kill();
    }
  }

  get port(): number {
    return this.#port;
  }

  get pid(): number {
    assert.ok(this.#child.pid !== undefined);
    return this.#child.pid;
  }

  get isRunning(): boolean {
    return running.has(this.#child);
  }

  /** Lines that no healthy run logs. */
  get errors(): LogLine[] {
    return this.log.filter((line) => line.level >= ERROR_LEVEL);
  }

  /** Resolves when a line with this message is there that was not at the last such wait. */
  async until(message: string): Promise<LogLine> {
    for (;;) {
      const at = this.log.findIndex((line, index) => index >= this.#awaitedLines && line.msg === message);
      if (at >= 0) {
        this.#awaitedLines = at + 1;
        return this.log[at] as LogLine;
      }
      await withDeadline(
        `the line ${message}`,
        new Promise<void>((resolve) => this.#child.stdout?.once('data', resolve)),
      );
    }
  }

  /** As SIGSTOP does, and resolves when none of its threads runs on. */
  standStill(): Promise<void> {
    return standStill(this.pid);
  }

  signal(signal: NodeJS.Signals): void {
    this.#child.kill(signal);
  }

  async untilExit(): Promise<Exit> {
    return withDeadline('the broker to end', this.exited);
  }

  /** As an operator stops it. */
  async stop(): Promise<Exit> {
    this.signal('SIGTERM');
    return this.untilExit();
  }

  /** As the power fails. */
  async kill(): Promise<Exit> {
    this.signal('SIGKILL');
    return this.untilExit();
  }

  /** A new process with the same flags on the same port, after this one ended; `changed` ones win. */
  async startAgain(...changed: string[]): Promise<BrokerProcess> {
    assert.ok(!this.isRunning, 'two brokers cannot have one port');
    const flags = [...this.#options.flags, ...changed];
    flags[flags.indexOf('--port') + 1] = String(this.#port);
    return BrokerProcess.launch({ ...this.#options, flags });
  }

  /** Resident memory now, in bytes. */
  async residentBytes(): Promise<number> {
    const status = await readFile(`/proc/${this.pid}/status`, 'utf8');
    const match = /^VmRSS:\s+(\d+) kB$/m.exec(status);
    assert.ok(match !== null, 'no VmRSS');
    return Number(match[1]) * 1024;
  }

  /** Open file descriptors now. */
  async descriptorCount(): Promise<number> {
    return (await readdir(`/proc/${this.pid}/fd`)).length;
  }

  #readLog(text: string): void {
    const lines = (this.#partialLine + text).split('\n');
    this.#partialLine = lines.pop() ?? '';
    for (const text of lines) {
      const line = JSON.parse(text) as LogLine;
      this.log.push(line);
      if (line.msg === 'listening') this.#settleListening(Number(line.port));
    }
  }
}

function withDefaults(flags: readonly string[], port: number): string[] {
  const all = [...flags];
  for (const [flag, value] of Object.entries({ '--port': String(port), ...DEFAULT_FLAGS })) {
    if (!flags.includes(flag)) all.push(flag, value);
  }
  return all;
}

export interface SuiteBroker {
  readonly port: number;
  readonly process: BrokerProcess;
}

/**
 * A broker for the tests of the enclosing `describe`. When they are over it must end by itself, with exit code 0, and
 * must have logged no error: a test that passes while the broker complains has not passed.
 */
export function useBroker(...flags: string[]): SuiteBroker {
  return useStartedBroker(() => BrokerProcess.start(...flags));
}

/** As `useBroker`, of one that needs something else to be started first. */
export function useStartedBroker(start: () => Promise<BrokerProcess>): SuiteBroker {
  let broker: BrokerProcess | undefined;
  before(async () => {
    broker = await start();
  });
  after(async () => {
    if (broker === undefined) return;
    const exit = broker.isRunning ? await broker.stop() : await broker.exited;
    assert.deepEqual(exit, { code: 0, signal: null }, `the broker ended badly: ${broker.stderr}`);
    assert.deepEqual(broker.errors, []);
    assert.equal(broker.stderr, '');
  });
  return {
    get port() {
      assert.ok(broker, 'the broker is not up yet');
      return broker.port;
    },
    get process() {
      assert.ok(broker, 'the broker is not up yet');
      return broker;
    },
  };
}

const THREAD_COUNTS = [1, 3];

/**
 * The same tests against one edge and against several. Every request of these tests has a connection of its own, so
 * with several edges most of what one test does is spread over them.
 */
export function describeOnEdges(
  name: string,
  flags: readonly string[],
  tests: (broker: SuiteBroker) => void,
  use: (...flags: string[]) => SuiteBroker = useBroker,
): void {
  for (const threads of THREAD_COUNTS) {
    describe(`${name}, with --threads ${threads}`, () => {
      tests(use('--threads', String(threads), ...flags));
    });
  }
}
