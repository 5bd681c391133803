import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type BrokerProcess, startBroker } from './broker-process.js';
import { makeCredential } from './credential.js';

/** How a broker is set up for what is measured with it. */
export interface BrokerSetup {
  readonly name: string;
  readonly isDurable?: boolean;
  /** Everybody needs a token. */
  readonly takesTokens?: boolean;
  /** Edges, 1 unless said. */
  readonly threads?: number;
  readonly flags?: readonly string[];
}

export const IN_MEMORY: BrokerSetup = { name: 'in memory' };

export const DURABLE: BrokerSetup = { name: 'durable', isDurable: true };

/** All that a scenario publishes stays in the ring. */
export const DURABLE_LARGE_RING: BrokerSetup = {
  name: 'durable, with a large ring',
  isDurable: true,
  flags: ['--ring-bytes', '32MiB'],
};

/** Next to nothing stays in the ring: whoever is behind reads from the log. */
export const DURABLE_SMALL_RING: BrokerSetup = {
  name: 'durable, with a small ring',
  isDurable: true,
  flags: ['--ring-bytes', '64KiB'],
};

/** Streams go when nobody uses them any more: a run leaves thousands behind. */
export const SHORT_LIVED: BrokerSetup = { name: 'with short-lived streams', flags: ['--ttl-ms', '1s'] };

export const WITH_TOKENS: BrokerSetup = { name: 'with tokens', takesTokens: true };

export const TWO_EDGES: BrokerSetup = { name: 'with two edges', threads: 2 };

export const FOUR_EDGES: BrokerSetup = { name: 'with four edges', threads: 4 };

export interface BrokersOptions {
  /** Null: of this checkout's build. */
  readonly mainFile: string | null;
  /** Null: not pinned. */
  readonly core: number | null;
  /** Null: the system's place for temporary files. */
  readonly dataParent: string | null;
  /** What is done to each before it is measured. */
  readonly warmUp: (broker: BrokerProcess) => Promise<void>;
}

/** The brokers of one bench. Each setup has one that serves all rounds, started when it is first asked for. */
export class Brokers {
  readonly #options: BrokersOptions;
  readonly #shared = new Map<BrokerSetup, BrokerProcess>();
  readonly #directories: string[] = [];

  constructor(options: BrokersOptions) {
    this.#options = options;
  }

  async shared(setup: BrokerSetup): Promise<BrokerProcess> {
    const running = this.#shared.get(setup);
    if (running !== undefined) return running;
    const started = await this.startFresh(setup);
    await this.#options.warmUp(started);
    this.#shared.set(setup, started);
    return started;
  }

  /** One that has served nobody yet; the caller stops it. */
  startFresh(setup: BrokerSetup): Promise<BrokerProcess> {
    const { mainFile, core } = this.#options;
    const { isDurable = false, takesTokens = false, threads = 1, flags = [] } = setup;
    const data = isDurable ? ['--data-dir', this.#newDirectory()] : [];
    const credential = takesTokens ? makeCredential(this.#newDirectory(), Date.now()) : null;
    const keys = credential === null ? [] : ['--jwt-keys-file', credential.keysFile];
    return startBroker({
      mainFile,
      core,
      flags: ['--threads', String(threads), ...flags, ...data, ...keys],
      token: credential?.token ?? null,
    });
  }

  /** The last lines that each of them logged. */
  logTails(): string {
    return [...this.#shared].map(([{ name }, broker]) => `${name}:\n${broker.logTail()}`).join('\n');
  }

  async stop(): Promise<void> {
    await Promise.all([...this.#shared.values()].map((broker) => broker.stop()));
    for (const directory of this.#directories) rmSync(directory, { recursive: true, force: true });
  }

  #newDirectory(): string {
    const directory = mkdtempSync(join(this.#options.dataParent ?? tmpdir(), 'gapless-bench-'));
    this.#directories.push(directory);
    return directory;
  }
}
