import assert from 'node:assert/strict';
import { type ChildProcess, spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { copyFileSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { eventually } from './deadline.js';
import { freePort } from './free-port.js';
import { request } from './http.js';
import { REPOSITORY_ROOT } from './paths.js';

const CONFIG = join(REPOSITORY_ROOT, 'grafana/prometheus.yml');
const RULES = join(REPOSITORY_ROOT, 'grafana/alerts.yml');

/** Why tests are skipped where there is none; with `CI` set there has to be one. */
export const NO_PROMETHEUS =
  process.env.CI === undefined && spawnSync('promtool', ['--version']).status !== 0
    ? 'needs prometheus and promtool'
    : false;

export interface Series {
  readonly metric: Readonly<Record<string, string>>;
  /** Time in seconds, and the value as text. */
  readonly value: readonly [number, string];
}

export interface Rule {
  readonly name: string;
  readonly query: string;
  readonly health: string;
  readonly lastError?: string;
  readonly state: string;
}

/** The real Prometheus, with this project's configuration but for the broker's address and how often it asks. */
export class PrometheusServer {
  readonly #child: ChildProcess;
  readonly #port: number;

  private constructor(child: ChildProcess, port: number) {
    this.#child = child;
    this.#port = port;
  }

  /** @param folder an empty one, which goes after `stop`. */
  static async start(folder: string, brokerPort: number): Promise<PrometheusServer> {
    const config = join(folder, 'prometheus.yml');
    const text = readFileSync(CONFIG, 'utf8')
      .replace('broker:8080', `127.0.0.1:${brokerPort}`)
      .replaceAll(/_interval: 5s/g, '_interval: 300ms');
    writeFileSync(config, text);
    copyFileSync(RULES, join(folder, 'alerts.yml'));
    const port = await freePort();
    const flags = [
      `--config.file=${config}`,
      `--storage.tsdb.path=${join(folder, 'data')}`,
      `--web.listen-address=127.0.0.1:${port}`,
      '--log.level=error',
    ];
    const child = spawn('prometheus', flags, { stdio: ['ignore', 'ignore', 'inherit'] });
    const server = new PrometheusServer(child, port);
    process.once('exit', () => child.kill('SIGKILL'));
    await eventually('Prometheus to be ready', () => {
      assert.equal(child.exitCode, null, 'Prometheus ended');
      return request(port, { path: '/-/ready' }).then(
        ({ status }) => status === 200,
        () => false,
      );
    });
    return server;
  }

  /** What an expression gives now. Fails on one that Prometheus does not understand. */
  async query(expr: string): Promise<Series[]> {
    const { result } = await this.#ask<{ result: Series[] }>(`query?query=${encodeURIComponent(expr)}`);
    return result;
  }

  async rules(): Promise<Rule[]> {
    const { groups } = await this.#ask<{ groups: { rules: Rule[] }[] }>('rules');
    return groups.flatMap(({ rules }) => rules);
  }

  async stop(): Promise<void> {
    this.#child.kill('SIGTERM');
    if (this.#child.exitCode === null) await once(this.#child, 'exit');
  }

  async #ask<T>(path: string): Promise<T> {
    const response = await request(this.#port, { path: `/api/v1/${path}` });
    const { status, data, error } = response.json<{ status: string; data: T; error?: string }>();
    assert.equal(status, 'success', `${path}: ${error}`);
    return data;
  }
}

/** `promtool check`, on the rules or the configuration. */
export function promtoolCheck(...words: string[]): { status: number | null; output: string } {
  const { status, stdout, stderr } = spawnSync('promtool', ['check', ...words], { encoding: 'utf8' });
  return { status, output: `${stdout}${stderr}` };
}
