import assert from 'node:assert/strict';
import { existsSync, readFileSync } from 'node:fs';
import { dirname, join, resolve } from 'node:path';
import { describe, it } from 'node:test';
import { loadConfig } from '#gapless/config/load.js';
import type { Config } from '#gapless/config/schema.js';
import { freshStream, publish, readAll } from '../support/gapless-client.js';
import { NATS_SKIP, NatsServer } from '../support/nats-server.js';
import { REPOSITORY_ROOT } from '../support/paths.js';
import { readPlainYaml } from '../support/plain-yaml.js';
import { startBroker } from '../support/replicated-brokers.js';

interface Service {
  readonly build?: string;
  readonly image?: string;
  readonly command?: string;
  readonly env_file?: string;
  readonly environment?: Readonly<Record<string, string>>;
  readonly volumes?: readonly string[];
  readonly ports?: readonly string[];
  readonly depends_on?: readonly string[];
}

interface Compose {
  readonly services: Readonly<Record<string, Service>>;
  readonly volumes?: Readonly<Record<string, null>>;
}

const FOLDER = join(REPOSITORY_ROOT, 'grafana');
const CLUSTER = join(FOLDER, 'cluster/compose.yml');
const FILES = [join(FOLDER, 'compose.yml'), CLUSTER];
const MIB = 1024 ** 2;

function read(path: string): Compose {
  return readPlainYaml(readFileSync(path, 'utf8')) as unknown as Compose;
}

function brokersOf({ services }: Compose): [string, Service][] {
  return Object.entries(services).filter(([, { build }]) => build !== undefined);
}

/** What the image says, which these files build on, and what they say themselves. */
function settingsOf(path: string, { env_file, environment = {} }: Service): Config {
  const lines = env_file === undefined ? '' : readFileSync(join(dirname(path), env_file), 'utf8');
  const told = lines.split('\n').filter((line) => line !== '' && !line.startsWith('#'));
  const env = {
    ...Object.fromEntries(told.map((line) => line.split(/=(.*)/s).slice(0, 2) as [string, string])),
    ...{ ...environment, GAPLESS_HOST: '0.0.0.0', GAPLESS_INSECURE: 'true' },
  };
  const settings = loadConfig([], env, () => assert.fail('there is no config file'));
  assert.equal(settings.outcome, 'loaded', JSON.stringify(settings));
  return settings.config;
}

for (const path of FILES) {
  describe(path.slice(REPOSITORY_ROOT.length + 1), () => {
    const compose = read(path);

    it('brokers are told what they understand', () => {
      assert.ok(brokersOf(compose).length > 0);
      for (const [, service] of brokersOf(compose)) {
        assert.equal(resolve(dirname(path), service.build ?? ''), REPOSITORY_ROOT);
        assert.ok(settingsOf(path, service).host);
      }
    });

    it('what it mounts and waits for is there, and ports are published on this machine alone', () => {
      const published = new Set<string>();
      for (const [name, { volumes = [], ports = [], depends_on = [] }] of Object.entries(compose.services)) {
        for (const [from = ''] of volumes.map((volume) => volume.split(':'))) {
          const isThere = from.startsWith('.')
            ? existsSync(resolve(dirname(path), from))
            : from in (compose.volumes ?? {});
          assert.ok(isThere, `${name}: ${from}`);
        }
        for (const port of ports) {
          assert.match(port, /^127\.0\.0\.1:\d+:\d+$/);
          assert.equal(published.has(port.split(':')[1] ?? ''), false, `${name}: ${port} is taken`);
          published.add(port.split(':')[1] ?? '');
        }
        for (const other of depends_on) assert.ok(other in compose.services, `${name}: ${other}`);
      }
    });

    it('Prometheus asks every broker, and has the rules', () => {
      const config = readFileSync(join(dirname(path), 'prometheus.yml'), 'utf8');
      const targets = [...(/targets: \[(.*)\]/.exec(config)?.[1]?.matchAll(/"([^"]+)"/g) ?? [])];
      assert.deepEqual(
        targets.map(([, target]) => target),
        brokersOf(compose).map(([name]) => `${name}:8080`),
      );
      const mounted = compose.services['prometheus']?.volumes ?? [];
      assert.ok(mounted.some((volume) => volume.endsWith('/etc/prometheus/alerts.yml:ro')));
    });
  });
}

describe('three brokers on three NATS servers, as the compose file has them', { skip: NATS_SKIP }, () => {
  const compose = read(CLUSTER);
  const servers = Object.entries(compose.services).filter(([, { image }]) => image?.startsWith('nats:'));

  it('all brokers know all servers, and each server knows the others', () => {
    const names = servers.map(([name]) => name);
    assert.equal(names.length, 3);
    for (const [, service] of brokersOf(compose)) {
      const { log, logReplicas, logBytesMax } = settingsOf(CLUSTER, service);
      assert.deepEqual(
        log,
        names.map((name) => `nats://${name}:4222`),
      );
      assert.equal(logReplicas, names.length);
      assert.ok(logBytesMax > MIB);
    }
    const config = readFileSync(join(FOLDER, 'cluster/nats.conf'), 'utf8');
    for (const [name, { command = '' }] of servers) {
      assert.match(config, new RegExp(`"nats://${name}:6222"`));
      assert.match(command, new RegExp(`--config /etc/nats.conf --name ${name}$`));
    }
  });

  it('real servers take that configuration, find each other, and keep what a broker is told', async (context) => {
    const cluster = await NatsServer.startClusterOf(
      context,
      join(FOLDER, 'cluster/nats.conf'),
      servers.length,
    );
    const [, service] = brokersOf(compose)[0] as [string, Service];
    const { logReplicas, logBytesMax, logWaitMs } = settingsOf(CLUSTER, service);
    const url = cluster.map((server) => server.url).join(',');
    const broker = await startBroker(
      context,
      { url },
      ...['--log-replicas', `${logReplicas}`, '--log-bytes-max', `${logBytesMax}`],
      ...['--log-wait-ms', `${logWaitMs}`],
    );
    const stream = freshStream('composed');
    await publish(broker.port, stream, 'x'.repeat(MIB));
    assert.equal((await readAll(broker.port, stream)).length, 1);
  });
});
