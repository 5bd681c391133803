import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { loadConfig } from '#gapless/config/load.js';
import { formatProblem } from '#gapless/config/problem.js';
import type { Config } from '#gapless/config/schema.js';
import { SETTINGS } from '#gapless/config/schema.js';

interface Given {
  argv?: string[];
  env?: Record<string, string>;
  file?: unknown;
}

const MIB = 1024 ** 2;

/**
 * The file, where there is one, is `broker.json`; a text is its content, anything else is written as JSON.
 */
function load({ argv = [], env = {}, file }: Given) {
  const content = typeof file === 'string' ? file : JSON.stringify(file);
  const flags = file === undefined ? argv : ['--config', 'broker.json', ...argv];
  return loadConfig(flags, env, (path) => {
    if (path !== 'broker.json') throw new Error(`ENOENT: ${path}`);
    return content;
  });
}

function loaded(given: Given) {
  const result = load(given);
  assert.equal(result.outcome, 'loaded', JSON.stringify(result));
  return result;
}

function config(given: Given): Config {
  return loaded(given).config;
}

function problems(given: Given): string[] {
  const result = load(given);
  assert.equal(result.outcome, 'refused');
  return result.problems.map(formatProblem);
}

describe('11 sources', () => {
  test('with nothing given every setting has its default', () => {
    const { config, sources } = loaded({});
    for (const { key, default: fallback } of SETTINGS) {
      assert.deepEqual(config[key], fallback);
      assert.equal(sources[key], 'default');
    }
    assert.equal(Object.keys(config).length, SETTINGS.length);
  });

  test('a flag wins over the environment, the environment over the file, the file over the default', () => {
    const file = { port: 1, threads: 2, drainMs: '3s' };
    const env = { GAPLESS_PORT: '4', GAPLESS_THREADS: '5' };
    const { config, sources } = loaded({ argv: ['--port', '6'], env, file });
    assert.deepEqual([config.port, config.threads, config.drainMs, config.host], [6, 5, 3000, '127.0.0.1']);
    assert.deepEqual(
      [sources.port, sources.threads, sources.drainMs, sources.host],
      ['flag', 'env', 'file', 'default'],
    );
  });

  test('the environment may name the config file', () => {
    const env = { GAPLESS_CONFIG: 'broker.json' };
    const result = loadConfig([], env, () => '{"port": 9000}');
    assert.equal(result.outcome, 'loaded');
    assert.equal(result.config.port, 9000);
    assert.equal(result.config.config, 'broker.json');
  });

  test('flag, environment and file read the same text to the same value', () => {
    const texts = {
      memory: '128MiB',
      drainMs: '1m',
      corsOrigins: 'https://a.example, https://b.example',
      insecure: 'true',
    };
    const env = {
      GAPLESS_MEMORY: texts.memory,
      GAPLESS_DRAIN_MS: texts.drainMs,
      GAPLESS_CORS_ORIGINS: texts.corsOrigins,
      GAPLESS_INSECURE: texts.insecure,
    };
    const argv = [
      '--memory',
      texts.memory,
      '--drain-ms',
      texts.drainMs,
      '--cors-origins',
      texts.corsOrigins,
      '--insecure',
    ];
    const expected = config({ argv });
    assert.equal(expected.memory, 128 * MIB);
    assert.equal(expected.drainMs, 60_000);
    assert.deepEqual(expected.corsOrigins, ['https://a.example', 'https://b.example']);
    assert.equal(expected.insecure, true);
    assert.deepEqual(config({ env }), expected);
    assert.deepEqual({ ...config({ file: texts }), config: null }, expected);
  });

  test('a file may hold JSON numbers, booleans and arrays', () => {
    const file = { memory: 128 * MIB, autoCreate: false, corsOrigins: ['*'] };
    const { memory, autoCreate, corsOrigins } = config({ file });
    assert.deepEqual({ memory, autoCreate, corsOrigins }, file);
  });

  test('variables of other programs are left alone', () => {
    assert.deepEqual(config({ env: { PORT: 'x', PATH: '/bin', gapless_port: 'x' } }), config({}));
  });
});

describe('11 flags', () => {
  test('a value may follow its flag or an equals sign', () => {
    assert.equal(config({ argv: ['--port', '1'] }).port, 1);
    assert.equal(config({ argv: ['--port=1'] }).port, 1);
  });

  test('a switch is turned on, off, or told', () => {
    assert.equal(config({ argv: ['--no-auto-create'] }).autoCreate, false);
    assert.equal(config({ argv: ['--no-auto-create', '--auto-create'] }).autoCreate, true);
    assert.equal(config({ argv: ['--auto-create=false'] }).autoCreate, false);
    assert.deepEqual(problems({ argv: ['--no-auto-create=true'] }), [
      '--no-auto-create: "true", expected no value',
    ]);
  });

  test('the last of a flag wins, and those of a list add up', () => {
    assert.equal(config({ argv: ['--port', '1', '--port', '2'] }).port, 2);
    const argv = ['--metrics-streams', 'a,b', '--metrics-streams', 'c*'];
    assert.deepEqual(config({ argv }).metricsStreams, ['a', 'b', 'c*']);
  });

  test('a list may be empty', () => {
    assert.deepEqual(config({ env: { GAPLESS_CORS_ORIGINS: '' } }).corsOrigins, []);
  });

  test('a flag without its value does not take the next flag for one', () => {
    assert.deepEqual(problems({ argv: ['--port', '--host', 'localhost'] }), [
      '--port: no value, expected a whole number from 0 to 65535',
    ]);
    assert.deepEqual(problems({ argv: ['--port'] }), [
      '--port: no value, expected a whole number from 0 to 65535',
    ]);
  });

  test('what is no flag is refused', () => {
    assert.deepEqual(problems({ argv: ['8080'] }), ['8080: unexpected argument, settings begin with --']);
    assert.deepEqual(problems({ argv: ['-p', '8080'] }), ['-p: unknown flag']);
  });
});

describe('11 problems', () => {
  test('12 a path stands for one MCP server', () => {
    const argv = ['--mcp', '/a=http://a/', '--mcp', '/b=http://b/', '--mcp', '/a=stdio:run'];
    assert.deepEqual(problems({ argv }), ['--mcp: "/a", expected each path once']);
  });

  test('all of them are reported at once, from every source, each with what was expected', () => {
    const argv = ['--port', '65536', '--prot', '1', '--threads', 'many', '--memory', '1KiB'];
    const env = { GAPLESS_DRAIN_MS: 'soon', GAPLESS_HOTS: 'x', GAPLESS_AUTO_CREATE: 'yes' };
    const file = { overflow: 'drop', retryms: 1, metricsStreamsTop: 1.5, config: 'other.json' };
    assert.deepEqual(problems({ argv, env, file }), [
      '--prot: unknown flag, did you mean --port?',
      '--port: "65536", expected a whole number from 0 to 65535',
      '--threads: "many", expected a whole number of threads from 1 to 31',
      '--memory: "1KiB", expected a size from 1MiB to 64GiB, in bytes or with KiB, MiB or GiB',
      'GAPLESS_HOTS: unknown variable, did you mean GAPLESS_HOST?',
      'GAPLESS_AUTO_CREATE: "yes", expected true or false',
      'GAPLESS_DRAIN_MS: "soon", expected a time from 0 to 10m, in milliseconds or with s, m, h or d',
      'retryms in broker.json: unknown key, did you mean retryMs?',
      'config in broker.json: a config file cannot name another',
      'overflow in broker.json: "drop", expected one of evict, reject',
      'metricsStreamsTop in broker.json: 1.5, expected a whole number of streams from 0 to 1000',
    ]);
  });

  test('a bad value is refused even where another one overrides it', () => {
    const env = { GAPLESS_THREADS: '0' };
    assert.deepEqual(problems({ argv: ['--threads', '2'], env }), [
      'GAPLESS_THREADS: "0", expected a whole number of threads from 1 to 31',
    ]);
  });

  test('what is quoted is cut, and control characters are escaped', () => {
    const [problem = ''] = problems({ argv: ['--port', `\u001b[2J${'9'.repeat(10_000)}`] });
    assert.ok(problem.startsWith('--port: "\\u001b[2J999'));
    assert.ok(problem.length < 200);
    assert.deepEqual(problems({ argv: ['-\u001b\u009b2J'] }), ['-\\u001b\\u009b2J: unknown flag']);
  });

  test('a program as an MCP server does not go with a log that is shared', () => {
    const log = ['--log', 'nats://127.0.0.1:4222', '--mcp', '/http=http://127.0.0.1:3000/mcp'];
    assert.deepEqual(problems({ argv: [...log, '--mcp', '/program=stdio:node server.js'] }), [
      '--mcp: "/program=stdio:node server.js", expected the URL of a server: a program belongs to one broker, ' +
        'and a log is shared by several',
    ]);
  });

  test('who stands before the host of a URL is not repeated', () => {
    const [form] = problems({ argv: ['--log', 'nats://me:s3cret@host/path'] });
    assert.match(form ?? '', /^--log: "nats:\/\/…@host\/path", expected /);
    for (const argv of [
      ['--log', 'nats://me:s3cret@a,tls://me:s3cret@b'],
      ['--log', 'nats://me:s3cret@a,nats://me:other-s3cret@b'],
      ['--log', 'nats://s3cret@a', '--log-credentials-file', 'nats.creds'],
      ['--log', 'nats://s3cret@a', '--data-dir', 'data'],
    ]) {
      const [problem, ...more] = problems({ argv });
      assert.match(problem ?? '', /^--log: "nats:\/\/…@a/);
      assert.doesNotMatch(problem ?? '', /s3cret/);
      assert.deepEqual(more, []);
    }
  });

  test('nor is what may have been meant to stand there', () => {
    for (const url of [
      'nats://me:s3,cret@host/path',
      'nats://me:s3 "cret@host/path',
      'nats://me:s3/cret@host',
      'nats://me:s3?cret@host',
      'nats://me:s3@cret@host/path',
      'me:s3cret@host:4222',
      'nats://other,nats://me:s3cret@host/path',
    ]) {
      const given = [{ argv: ['--log', url] }, { argv: [url] }, { file: { log: [url] } }];
      for (const said of given.map((each) => problems(each).join())) {
        assert.match(said, /…@host/);
        assert.doesNotMatch(said, /me:|s3|cret/);
      }
    }
    const torn = problems({ file: '{"log": "nats://me:s3cret@host", x}' });
    assert.deepEqual(torn, ['broker.json: not JSON']);
    const [keys] = problems({ argv: ['--jwks-url', 'https://me:s3cret@host/keys'] });
    assert.match(
      keys ?? '',
      /^--jwks-url: "https:\/\/…@host\/keys", expected an https URL.*, without a user$/,
    );
  });

  test('keys of the language are keys like any other unknown one', () => {
    const file = '{"__proto__": {"port": 1}, "constructor": 1, "toString": 1}';
    assert.deepEqual(problems({ file }), [
      '__proto__ in broker.json: unknown key',
      'constructor in broker.json: unknown key',
      'toString in broker.json: unknown key',
    ]);
  });

  test('a config file that is missing, no JSON or no object is named', () => {
    assert.deepEqual(problems({ argv: ['--config', 'none.json'] }), [
      'none.json: cannot be read: ENOENT: none.json',
    ]);
    assert.match(problems({ file: '{port: 1}' }).join(), /^broker\.json: not JSON: /);
    assert.deepEqual(problems({ file: [1] }), ['broker.json: [1], expected one JSON object']);
    assert.deepEqual(problems({ argv: ['--config='] }), ['--config: "", expected a path']);
  });

  test('variables that Kubernetes sets for a Service of this name are explained', () => {
    const env = {
      GAPLESS_SERVICE_HOST: '10.0.0.1',
      GAPLESS_SERVICE_PORT_HTTP: '8080',
      GAPLESS_PORT: 'tcp://10.0.0.1:8080',
      GAPLESS_PORT_8080_TCP_ADDR: '10.0.0.1',
    };
    const [problem = '', ...others] = problems({ env });
    assert.deepEqual(others, []);
    assert.match(
      problem,
      /^GAPLESS_SERVICE_HOST, .*GAPLESS_PORT_8080_TCP_ADDR: set by Kubernetes .*enableServiceLinks/,
    );
  });
});

describe('relations', () => {
  test('a size has to fit into the one around it', () => {
    assert.deepEqual(problems({ argv: ['--event-bytes-max', '9MiB'] }), [
      '--event-bytes-max: "9MiB", expected at most the 8MiB of the default of bodyBytesMax',
    ]);
    assert.deepEqual(problems({ argv: ['--stream-bytes-max', '64MiB'], env: { GAPLESS_MEMORY: '16MiB' } }), [
      '--stream-bytes-max: "64MiB", expected at most the 16MiB of GAPLESS_MEMORY',
    ]);
    assert.deepEqual(problems({ argv: ['--stream-bytes-max', '1MiB'], file: { retentionBytes: '1MiB' } }), [
      'retentionBytes in broker.json: "1MiB", expected less than the 1MiB of --stream-bytes-max',
    ]);
  });

  test('a certificate has a key, to the log as well', () => {
    assert.deepEqual(problems({ argv: ['--log-tls-cert-file', 'a.pem'] }), [
      '--log-tls-cert-file: alone, expected logTlsKeyFile as well: TLS needs both',
    ]);
    assert.deepEqual(problems({ env: { GAPLESS_TLS_KEY_FILE: 'a.pem' } }), [
      'GAPLESS_TLS_KEY_FILE: alone, expected tlsCertFile as well: TLS needs both',
    ]);
  });

  test('a default that does not fit into what was set is lowered', () => {
    const small = config({ argv: ['--memory', '2MiB'] });
    assert.deepEqual([small.streamBytesMax, small.retentionBytes], [2 * MIB, MIB]);
    assert.equal(config({ argv: ['--body-bytes-max', '64KiB'] }).eventBytesMax, 64 * 1024);
  });

  test('the smallest memory and the smallest stream work by themselves', () => {
    assert.equal(load({ argv: ['--memory', '1MiB'] }).outcome, 'loaded');
    assert.equal(load({ argv: ['--stream-bytes-max', '4KiB'] }).outcome, 'loaded');
    assert.equal(load({ argv: ['--body-bytes-max', '1'] }).outcome, 'loaded');
  });

  test('4.3 a heartbeat rarer than the contract promises is refused', () => {
    assert.equal(config({ argv: ['--heartbeat-interval-ms', '15s'] }).heartbeatIntervalMs, 15_000);
    assert.match(problems({ argv: ['--heartbeat-interval-ms', '16s'] }).join(), /from 10ms to 15s/);
  });

  test('9.2 a host that others can reach is refused unless told --insecure', () => {
    for (const host of ['0.0.0.0', '::', '10.0.0.1', 'broker.example']) {
      assert.match(
        problems({ argv: ['--host', host] }).join(),
        /^--host: .*expected a loopback address.*--insecure$/,
      );
      assert.equal(config({ argv: ['--host', host, '--insecure'] }).host, host);
    }
  });
});
