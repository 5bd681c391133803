/** `gapless/embedded`: a broker within a program, for its own clients and for tests. It is the one that `serve` runs. */

import { loadConfig } from '../config/load.js';
import { createLogger } from '../log.js';
import { startBroker } from './start-broker.js';

export interface EmbeddedBroker {
  /** What clients are given. */
  readonly url: string;
  /** Resolves if a thread of the broker dies; it is of no use any more. */
  readonly failed: Promise<Error>;
  /** Sends subscribers away over the drain time, and closes everything. */
  stop(): Promise<void>;
}

/** By the names that a config file has (contract 11). */
export type EmbeddedSettings = Readonly<Record<string, string | number | boolean | readonly string[]>>;

/** A port of its own on the loopback address, and no lines but those that a program should see. */
const DEFAULTS: EmbeddedSettings = { host: '127.0.0.1', port: 0, logLevel: 'warn', drainMs: 0 };

/**
 * Settings are those given and the defaults; neither the environment nor the arguments of the program are looked at.
 *
 * @throws {TypeError} for settings that are refused, with all that is wrong about them; what `startBroker` throws.
 */
export async function startEmbeddedBroker(settings: EmbeddedSettings = {}): Promise<EmbeddedBroker> {
  const all = { ...DEFAULTS, ...settings };
  const loaded = loadConfig(['--config', 'settings'], {}, () => JSON.stringify(all));
  if (loaded.outcome === 'refused') {
    throw new TypeError(loaded.problems.map(({ where, message }) => `${where}: ${message}`).join('; '));
  }
  const { config } = loaded;
  const broker = await startBroker(config, createLogger({ level: config.logLevel, thread: 'main' }));
  const host = config.host.includes(':') ? `[${config.host}]` : config.host;
  return {
    url: `http${config.tlsCertFile === null ? '' : 's'}://${host}:${broker.port}`,
    failed: broker.failed,
    stop: () => broker.drain(),
  };
}
