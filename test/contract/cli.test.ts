import assert from 'node:assert/strict';
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { get, type IncomingMessage } from 'node:http';
import { type AddressInfo, createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { after, describe, test } from 'node:test';
import { withDeadline } from '../support/deadline.js';
import { MAIN_FILE, REPOSITORY_ROOT } from '../support/paths.js';

interface Output {
  code: number | null;
  stdout: string;
  stderr: string;
}

const folder = mkdtempSync(join(tmpdir(), 'gapless-cli-'));
const running = new Set<ChildProcess>();
after(() => {
  // The whole group: what npm starts would outlive npm.
  for (const { pid } of running) if (pid !== undefined) process.kill(-pid, 'SIGKILL');
  rmSync(folder, { recursive: true });
});

/** The program as a shell would run it, with nothing of this process's own settings. */
class Program {
  readonly ended: Promise<Output>;
  readonly #child: ChildProcess;
  readonly #lines: string[] = [];
  #stderr = '';

  constructor(command: string, argv: readonly string[], env: Record<string, string> = {}) {
    const inherited = { PATH: process.env.PATH, HOME: process.env.HOME };
    const child = spawn(command, argv, {
      cwd: REPOSITORY_ROOT,
      env: { ...inherited, ...env },
      stdio: ['ignore', 'pipe', 'pipe'],
      detached: true,
    });
    running.add(child);
    createInterface({ input: child.stdout }).on('line', (line) => {
      this.#lines.push(line);
      child.emit('line');
    });
    child.stderr.setEncoding('utf8').on('data', (text: string) => {
      this.#stderr += text;
    });
    this.#child = child;
    this.ended = withDeadline(
      `the end of ${command} ${argv.join(' ')}`,
      once(child, 'close').then(([code]) => {
        running.delete(child);
        return { code, stdout: this.#lines.join('\n'), stderr: this.#stderr };
      }),
    );
  }

  signal(name: NodeJS.Signals): void {
    this.#child.kill(name);
  }

  /** The log line with this message, as soon as it is there. */
  async logged(message: string): Promise<Record<string, unknown>> {
    for (;;) {
      const line = this.#lines.find((text) => text.includes(`"msg":"${message}"`));
      if (line !== undefined) return JSON.parse(line);
      const output = await withDeadline(
        `the line ${message}`,
        Promise.race([once(this.#child, 'line'), this.ended]),
      );
      assert.ok(Array.isArray(output), `ended before it logged ${message}: ${this.#stderr}`);
    }
  }
}

function gapless(...argv: string[]): Program {
  return new Program(process.execPath, [MAIN_FILE, ...argv]);
}

/** A broker with one subscriber, so that draining has something to wait for. */
async function serveOneSubscriber(
  ...flags: string[]
): Promise<{ broker: Program; subscription: IncomingMessage }> {
  const broker = gapless('serve', '--port', '0', ...flags);
  const { url } = await broker.logged('listening');
  const request = get(`${url}/v1/streams/cli`, { headers: { accept: 'text/event-stream' }, agent: false });
  const [subscription] = (await once(request, 'response')) as [IncomingMessage];
  assert.equal(subscription.statusCode, 200);
  // How the connection ends is the business of other tests.
  subscription.on('error', () => undefined).resume();
  request.on('error', () => undefined);
  return { broker, subscription };
}

describe('11 usage', () => {
  test('help is on standard output, by every way to ask for it', async () => {
    for (const argv of [['--help'], ['-h'], ['help']]) {
      const { code, stdout, stderr } = await gapless(...argv).ended;
      assert.deepEqual([code, stderr], [0, '']);
      assert.match(stdout, /^Usage: gapless COMMAND/);
    }
    for (const argv of [
      ['serve', '--help'],
      ['serve', '--port', 'x', '-h'],
      ['help', 'serve'],
    ]) {
      const { code, stdout, stderr } = await gapless(...argv).ended;
      assert.deepEqual([code, stderr], [0, '']);
      assert.match(stdout, /^Usage: gapless serve/);
      assert.match(stdout, /--heartbeat-interval-ms TIME/);
      for (const line of stdout.split('\n')) assert.ok(line.length <= 100, line);
    }
  });

  test('the version is one line', async () => {
    const { code, stdout } = await gapless('--version').ended;
    assert.equal(code, 0);
    assert.match(stdout, /^\d+\.\d+\.\d+$/);
  });

  test('an unknown command exits with 2 and lists the commands', async () => {
    const { code, stdout, stderr } = await gapless('srve').ended;
    assert.deepEqual([code, stdout], [2, '']);
    assert.match(stderr, /srve: unknown command, did you mean serve\?/);
    assert.match(stderr, /commands: serve, publish, subscribe, .*, help/);
  });

  test('no command exits with 2 and says how to go on', async () => {
    const { code, stdout, stderr } = await gapless().ended;
    assert.deepEqual([code, stdout], [2, '']);
    assert.match(stderr, /Usage: gapless COMMAND/);
  });

  test('unknown flags and bad values are refused, all at once, with exit code 2', async () => {
    for (const command of ['serve', 'config']) {
      const { code, stdout, stderr } = await gapless(command, '--prot', '1', '--threads', '99').ended;
      assert.deepEqual([code, stdout], [2, '']);
      assert.match(stderr, /^gapless: --prot: unknown flag, did you mean --port\?$/m);
      assert.match(stderr, /^gapless: --threads: "99", expected a whole number of threads from 1 to 31$/m);
      assert.match(stderr, new RegExp(`^gapless: see gapless ${command} --help$`, 'm'));
    }
  });

  test('an unknown variable is refused', async () => {
    const argv = [MAIN_FILE, 'serve', '--port', '0'];
    const { code, stderr } = await new Program(process.execPath, argv, { GAPLESS_PROT: '1' }).ended;
    assert.equal(code, 2);
    assert.match(stderr, /GAPLESS_PROT: unknown variable, did you mean GAPLESS_PORT\?/);
  });
});

describe('11 config', () => {
  const file = join(folder, 'broker.json');
  writeFileSync(file, '{"drainMs": "7s", "threads": 2}');

  test('each setting is printed with its value and source', async () => {
    const argv = [MAIN_FILE, 'config', '--config', file, '--port', '9000'];
    const { code, stdout } = await new Program(process.execPath, argv, { GAPLESS_THREADS: '3' }).ended;
    assert.equal(code, 0);
    assert.match(stdout, /^port +9000 +flag$/m);
    assert.match(stdout, /^threads +3 +env$/m);
    assert.match(stdout, /^drainMs +7s +file$/m);
    assert.match(stdout, /^memory +256MiB +default$/m);
  });

  test('as JSON sizes are bytes and times are milliseconds', async () => {
    const { code, stdout } = await gapless('config', '--json', '--config', file).ended;
    assert.equal(code, 0);
    const settings = JSON.parse(stdout);
    assert.deepEqual(settings.drainMs, { value: 7000, unit: 'ms', source: 'file' });
    assert.deepEqual(settings.memory, { value: 268_435_456, unit: 'bytes', source: 'default' });
    assert.deepEqual(settings.corsOrigins, { value: [], source: 'default' });
  });

  test('what config prints as a value, serve reads', async () => {
    const { stdout } = await gapless('config').ended;
    const lines = stdout.split('\n').map((line) => line.split(/ {2,}/));
    const content = lines.filter((cells) => cells.length === 3).map(([key, value]) => [key, value]);
    assert.ok(content.length > 20);
    const copy = join(folder, 'copy.json');
    writeFileSync(copy, JSON.stringify(Object.fromEntries(content)));
    const { code, stderr } = await gapless('config', '--config', copy).ended;
    assert.deepEqual([code, stderr], [0, '']);
  });

  test('who stands before the host of a URL is not shown', async () => {
    const flags = ['--mcp', '/tools=https://me:s3cret@host/mcp', '--mcp', '/mail=https://host/@me'];
    for (const format of [[], ['--json']]) {
      const argv = [MAIN_FILE, 'config', ...format, ...flags];
      const env = { GAPLESS_LOG: 'nats://me:s3cret@a,nats://me:s3cret@b' };
      const { code, stdout } = await new Program(process.execPath, argv, env).ended;
      assert.equal(code, 0);
      for (const shown of ['nats://…@a', 'nats://…@b', '/tools=https://…@host/mcp', '/mail=https://host/@me'])
        assert.ok(stdout.includes(shown), stdout);
      assert.doesNotMatch(stdout, /cret|me:/);
    }
  });

  test('two formats at once are refused', async () => {
    const { code, stderr } = await gapless('config', '--json', '--markdown').ended;
    assert.equal(code, 2);
    assert.match(stderr, /one format is enough/);
  });
});

describe('11 serve', () => {
  test('one line says where it listens', async () => {
    const broker = gapless('serve', '--port', '0', '--memory', '16MiB');
    const line = await broker.logged('listening');
    assert.equal(line.url, `http://127.0.0.1:${line.port}`);
    assert.equal(line.threads, 1);
    assert.equal(line.memory, 16 * 1024 ** 2);
    const response = await fetch(`${line.url}/healthz`);
    assert.equal(response.status, 200);
    broker.signal('SIGTERM');
    assert.equal((await broker.ended).code, 0);
  });

  test('npm start passes flags on', async () => {
    // Without scripts around it: those build, and this runs on what is built.
    const npm = new Program('npm', [
      'start',
      '--ignore-scripts',
      '--silent',
      '--',
      '--port',
      '0',
      '--memory',
      '32MiB',
    ]);
    const line = await npm.logged('listening');
    assert.equal(line.memory, 32 * 1024 ** 2);
    // To the broker itself: whether a shell between it and npm passes signals on is up to the shell.
    process.kill(Number(line.pid), 'SIGTERM');
    assert.equal((await npm.ended).code, 0);
  });

  test('a port in use is one clear line and exit code 1', async () => {
    const other = createServer().listen(0, '127.0.0.1');
    await once(other, 'listening');
    const { port } = other.address() as AddressInfo;
    const { code, stdout, stderr } = await gapless('serve', '--port', String(port)).ended;
    other.close();
    assert.deepEqual([code, stdout], [1, '']);
    assert.equal(stderr, `gapless: cannot listen on 127.0.0.1:${port}: the port is in use\n`);
  });

  test('9.2 an address that others can reach is refused, and the message says what to do', async () => {
    const { code, stdout, stderr } = await gapless('serve', '--port', '0', '--host', '0.0.0.0').ended;
    assert.deepEqual([code, stdout], [2, '']);
    assert.match(stderr, /--host: "0\.0\.0\.0", expected a loopback address .* add --insecure/);
  });

  test('10 SIGTERM and SIGINT drain and exit with 0', async () => {
    for (const signal of ['SIGTERM', 'SIGINT'] as const) {
      const { broker, subscription } = await serveOneSubscriber('--drain-ms', '50');
      const closed = once(subscription, 'close');
      broker.signal(signal);
      const { code, stderr } = await broker.ended;
      assert.deepEqual([code, stderr], [0, '']);
      await closed;
    }
  });

  test('10 a second SIGTERM ends it at once with exit code 1 and one clear line', async () => {
    const { broker } = await serveOneSubscriber('--drain-ms', '10m');
    broker.signal('SIGTERM');
    await broker.logged('draining');
    broker.signal('SIGTERM');
    const { code, stderr } = await broker.ended;
    assert.equal(code, 1);
    assert.equal(stderr, 'gapless: SIGTERM while draining, stopped before all subscribers were sent away\n');
  });

  test('11 an error that nobody caught is logged and exits with 1', async () => {
    const breakOnSignal = 'process.on("SIGUSR2", () => { throw new Error("planted") })';
    const env = { NODE_OPTIONS: `--import=data:text/javascript,${encodeURIComponent(breakOnSignal)}` };
    const broker = new Program(process.execPath, [MAIN_FILE, 'serve', '--port', '0'], env);
    await broker.logged('listening');
    broker.signal('SIGUSR2');
    const { err } = await broker.logged('failed');
    assert.equal((err as Error).message, 'planted');
    assert.equal((await broker.ended).code, 1);
  });

  test('11 one Ctrl-C that arrives twice, as it does under npm, still drains', async () => {
    const { broker } = await serveOneSubscriber('--drain-ms', '1s');
    broker.signal('SIGINT');
    broker.signal('SIGINT');
    const { code, stderr } = await broker.ended;
    assert.deepEqual([code, stderr], [0, '']);
  });
});
