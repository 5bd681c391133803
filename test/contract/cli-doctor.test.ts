import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { text } from 'node:stream/consumers';
import { after, describe, it } from 'node:test';
import { type Facts, findingsOf } from '#gapless/cli/doctor-checks.js';
import { settingsWithoutSecrets, withoutSecrets } from '#gapless/cli/without-secrets.js';
import { loadConfig } from '#gapless/config/load.js';
import type {
  JetStreamReport,
  ServerReport,
  StoredLogReport,
} from '#gapless/storage/jetstream/jetstream-report.js';
import { useBroker } from '../support/broker-process.js';
import { withDeadline } from '../support/deadline.js';
import { makeDirectory, removeDirectory } from '../support/durable-broker.js';
import { MEDIA_TYPES, publish } from '../support/gapless-client.js';
import { MAIN_FILE } from '../support/paths.js';
import { apiKey, bearer, Files, Issuer, keySetOf } from '../support/tokens.js';

interface Bundle {
  version: string;
  settings: { key: string; value: string }[];
  limits: Record<string, number | null>;
  kernel: Record<string, string>;
  disk: { freeBytes: number; files: { name: string }[] };
  broker: {
    problem: string | null;
    status: Record<string, number>;
    metrics: Record<string, number>;
    streams: object[];
  };
  findings: { level: string; what: string }[];
}

async function doctor(
  argv: readonly string[],
  env: Record<string, string> = {},
): Promise<{ code: number | null; out: string; err: string }> {
  const words = [MAIN_FILE, 'doctor', ...argv];
  const child = spawn(process.execPath, words, { stdio: 'pipe', env: { PATH: process.env.PATH, ...env } });
  const code = new Promise<number | null>((resolve) => child.once('close', resolve));
  const [out, err] = await Promise.all([text(child.stdout), text(child.stderr)]);
  return { code: await withDeadline('the end of gapless doctor', code), out, err };
}

const files = new Files();
const issuer = await Issuer.create('HS256');
const key = apiKey('operator', { publish: ['*'], admin: true });
const directory = makeDirectory();
/** Beyond the ports that systems give away. */
const NOBODY = 'http://127.0.0.1:64999';

describe('11 gapless doctor', () => {
  const flags = [
    ...['--data-dir', directory, '--jwt-keys-file', files.write('keys.json', keySetOf(issuer))],
    ...['--api-keys-file', files.write('api.json', JSON.stringify({ apiKeys: [key.entry] }))],
  ];
  const broker = useBroker(...flags);
  after(() => removeDirectory(directory));

  it('11 has version, settings, limits, kernel, disk, and what the broker says where the token may ask', async () => {
    const secret = 'the data of an event';
    await publish(broker.port, 'demo', `${secret}\ntwo`, MEDIA_TYPES.ndjson, bearer(key.key));
    const argv = [...flags, '--port', String(broker.port), '--json'];
    const { code, out, err } = await doctor(argv, { GAPLESS_TOKEN: key.key });
    assert.equal(err, '');
    const bundle = JSON.parse(out) as Bundle;
    assert.match(bundle.version, /^\d+\.\d+\.\d+/);
    assert.deepEqual(bundle.settings.map((setting) => setting.key).sort(), [
      'apiKeysFile',
      'dataDir',
      'jwtKeysFile',
      'port',
    ]);
    assert.ok(Number(bundle.limits.descriptorsSoft) > 0 && Number(bundle.limits.connectionsInUseMax) > 0);
    assert.ok(bundle.kernel['net/core/somaxconn'] !== undefined);
    assert.ok(bundle.disk.freeBytes > 0);
    assert.ok(bundle.disk.files.some(({ name }) => name === 'events.mdb'));
    const { problem, status, metrics, streams } = bundle.broker;
    assert.equal(problem, null);
    assert.deepEqual(status, { '/healthz': 200, '/readyz': 200, '/metrics': 200, '/v1/streams': 200 });
    assert.equal(metrics.gapless_committed_events, 2);
    assert.equal(metrics.gapless_seam_violations_total, 0);
    const [{ name, committed, head, named }] = streams as [Record<string, unknown>];
    assert.deepEqual([name, committed, head, named], ['demo', 2, 2, undefined]);
    assert.equal(code, bundle.findings.some(({ level }) => level === 'bad') ? 1 : 0);
    assert.ok(!out.includes(secret));
  });

  it('11 tells no secret, in JSON or for people: no token, no key, and of a URL only where it leads', async () => {
    const words = [
      's3cret-user',
      's3cret-password',
      's3cret-path',
      's3cret-query',
      's3cret-token',
      's3cret-env',
    ];
    const [user, password, path, query, token, env] = words;
    const url = `https://${user}:${password}@127.0.0.1:64999/${path}?${query}`;
    const keys = `https://127.0.0.1:64999/${path}?${query}`;
    const argv = [...flags, '--jwks-url', keys, '--url', url, '--token', token as string];
    const told = await issuer.grant({ admin: true });
    const hidden = [...words, String(issuer.jwk.k), key.key, told, JSON.stringify(key.entry).slice(20, 60)];
    for (const more of [[], ['--json']]) {
      for (const GAPLESS_TOKEN of [env as string, key.key, told]) {
        const { out, err } = await doctor([...argv, ...more], { GAPLESS_TOKEN, GAPLESS_JWT_ISSUER: url });
        assert.match(out, /https:\/\/127\.0\.0\.1:64999\/…/);
        for (const word of hidden) assert.ok(!out.includes(word) && !err.includes(word), word);
      }
    }
  });

  it('11 without a broker it says so, and the rest all the same; wrong settings are exit code 2', async () => {
    const { code, out } = await doctor(['--url', NOBODY]);
    assert.equal(code, 0, out);
    assert.match(out, /no broker answers at http:\/\/127\.0\.0\.1:64999: ECONNREFUSED/);
    assert.match(out, /descriptorsSoft +\d+/);
    assert.equal((await doctor(['--prot', '1'])).code, 2);
    assert.equal((await doctor(['--url', 'nonsense'])).code, 2);
    assert.equal((await doctor(['--url', 'localhost:64999'])).code, 2);
  });

  it('11 a token that may not is told, and what is missing', async () => {
    const { out } = await doctor(['--port', String(broker.port)]);
    assert.match(out, /\/metrics +401/);
    assert.match(out, /shows no metrics without a token that may/);
  });
});

describe('11 what the doctor finds', () => {
  const loaded = loadConfig([], {}, () => '');
  assert.ok(loaded.outcome === 'loaded');
  const well: Facts = {
    config: loaded.config,
    limits: { descriptorsSoft: 65_536, descriptorsHard: 65_536, connectionsInUseMax: 65_408 },
    machine: {
      cores: 2,
      memoryBytes: 2 ** 33,
      memoryFreeBytes: 2 ** 32,
      memoryLimitBytes: null,
      kernel: '6',
      glibc: '2',
    },
    kernel: { 'net/core/somaxconn': '4096' },
    disk: {
      directory: 'data',
      problem: null,
      freeBytes: 2 ** 36,
      totalBytes: 2 ** 37,
      type: '0xef53',
      files: [],
    },
    sharedLog: null,
    broker: {
      url: 'u',
      problem: null,
      status: { '/readyz': 200, '/metrics': 200 },
      metrics: {},
      streams: [],
    },
  };
  const { disk, broker } = well;
  assert.ok(disk !== null);
  const servers: ServerReport[] = ['n0', 'n1', 'n2'].map((name) => ({
    address: `${name}:4222`,
    problem: null,
    name,
    version: '2.10.27',
  }));
  const stored = {
    replicas: 3,
    leader: 'n0',
    followers: ['n1', 'n2'].map((name) => ({ name, current: true, behind: 0 })),
    messages: 1,
    bytes: 1,
    bytesMax: null,
    lossySetting: null,
  };
  const shared: JetStreamReport = { servers, problem: null, log: stored };
  const replicated = { ...well, config: { ...well.config, logReplicas: 3 }, sharedLog: shared };
  /** With another log, or with a server at the end that is another. */
  const stores = (log: Partial<StoredLogReport>): Facts => ({
    ...replicated,
    sharedLog: { ...shared, log: { ...stored, ...log } },
  });
  const serves = (server: Partial<ServerReport>): Facts => ({
    ...replicated,
    sharedLog: { ...shared, servers: servers.with(-1, { ...servers[0], ...server } as ServerReport) },
  });

  const ILL: readonly (readonly [string, Facts, 'bad' | 'warn', RegExp])[] = [
    [
      'few descriptors',
      { ...well, limits: { ...well.limits, descriptorsSoft: 1024 } },
      'warn',
      /1024 open files/,
    ],
    ['a short queue', { ...well, kernel: { 'net/core/somaxconn': '128' } }, 'warn', /somaxconn is 128/],
    [
      'memory that is not there',
      { ...well, machine: { ...well.machine, memoryLimitBytes: 2 ** 28 } },
      'bad',
      /memory is/,
    ],
    ['a full disk', { ...well, disk: { ...disk, freeBytes: 1 } }, 'bad', /1 bytes are left/],
    ['a log in memory', { ...well, disk: { ...disk, type: '0x1021994' } }, 'warn', /is in memory/],
    ['a log on a network', { ...well, disk: { ...disk, type: '0x6969' } }, 'bad', /on a network/],
    [
      'a broker that drains',
      { ...well, broker: { ...broker, status: { '/readyz': 503 } } },
      'bad',
      /not ready/,
    ],
    [
      'a broken seam',
      { ...well, broker: { ...broker, metrics: { gapless_seam_violations_total: 1 } } },
      'bad',
      /seam/,
    ],
    [
      'a log that fails',
      { ...well, broker: { ...broker, metrics: { gapless_log_fault: 1 } } },
      'bad',
      /log_fault is 1/,
    ],
    ['servers of two versions', serves({ name: 'n2', version: '2.15.1' }), 'warn', /2\.10\.27, 2\.15\.1/],
    ['a server that nobody has met', serves({}), 'warn', /version of n2$/],
    [
      'a log that is still to be made',
      { ...replicated, sharedLog: { ...shared, log: null } },
      'warn',
      /no JetStream stream GAPLESS yet/,
    ],
    [
      'servers that do not answer for JetStream',
      { ...replicated, sharedLog: { ...shared, log: null, problem: 'timeout' } },
      'bad',
      /looked at: timeout/,
    ],
    ['a log that nobody leads', stores({ leader: '' }), 'bad', /no server leads/],
    [
      'a server that is behind',
      stores({ followers: stored.followers.with(1, { name: 'n2', current: false, behind: 7 }) }),
      'bad',
      /n2 is not current, 7 operations behind/,
    ],
    [
      'other replicas than were asked for',
      stores({ replicas: 5 }),
      'warn',
      /5 servers, and logReplicas is 3/,
    ],
    ['a log that is nearly full', stores({ bytes: 90, bytesMax: 100 }), 'warn', /90 bytes of 100/],
    ['a log that loses events', stores({ lossySetting: 'max_age' }), 'bad', /by itself: max_age/],
  ];
  it('11 nothing, where all is well', () => {
    for (const facts of [well, replicated]) assert.deepEqual(findingsOf(facts), []);
  });
  it('11 NATS that loses the log after a purge, and NATS that is not advised, where several servers have it', () => {
    for (const [version, said] of [
      ['2.9.10', /2\.9\.10 loses the log when it starts again after a purge/],
      ['2.9.25', /2\.9\.25, with several servers/],
    ] as const) {
      const old = servers.map((server) => ({ ...server, version }));
      const [finding, ...others] = findingsOf({ ...replicated, sharedLog: { ...shared, servers: old } });
      assert.match(finding?.what ?? '', said);
      assert.deepEqual(others, []);
    }
  });
  for (const [what, facts, level, said] of ILL) {
    it(`11 ${what}`, () => {
      const found = findingsOf(facts);
      assert.equal(found.length, 1);
      assert.equal(found[0]?.level, level);
      assert.match(found[0]?.what ?? '', said);
    });
  }

  it('11 URLs in a text lose who, path and query, wherever they stand', () => {
    const text = '/mcp=http://a:b@h:1/x?y, https://h, postgres://u:p@h/d, nats://u:p,(w)@h';
    assert.equal(withoutSecrets(text), '/mcp=http://h:1/…, https://h, postgres://h/…, nats://h/…');
  });

  it('11 of the command of an MCP server only the program is told, and the servers after it are', () => {
    const mounts = [
      '/a=stdio:npx -y srv --token s3cret https://u:s3cret@h',
      '/b=stdio:srv',
      '/c=http://h/s3cret',
    ];
    const settings = loadConfig(
      mounts.flatMap((mount) => ['--mcp', mount]),
      {},
      () => '',
    );
    assert.equal(settings.outcome, 'loaded');
    assert.deepEqual(
      settingsWithoutSecrets(settings).map(({ value }) => value),
      ['/a=stdio:npx …,/b=stdio:srv,/c=http://h/…'],
    );
  });

  it('11 says where the log is, and which file has the credentials, but not who comes with them', () => {
    const valuesOf = (...argv: string[]): string[] => {
      const settings = loadConfig(argv, {}, () => '');
      assert.equal(settings.outcome, 'loaded');
      return settingsWithoutSecrets(settings).map(({ value }) => value);
    };
    assert.deepEqual(valuesOf('--log', 'tls://user:secret@h:4222,tls://other:4222'), [
      'tls://h:4222/…,tls://other:4222',
    ]);
    assert.deepEqual(valuesOf('--log', 'tls://h', '--log-credentials-file', 'nats.creds'), [
      'tls://h',
      'nats.creds',
    ]);
  });
});
