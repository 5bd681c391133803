import assert from 'node:assert/strict';
import { spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, readFile, rm } from 'node:fs/promises';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { text } from 'node:stream/consumers';
import { after, before, describe, test } from 'node:test';
import { NATS_SKIP } from '../support/nats-server.js';
import { REPOSITORY_ROOT } from '../support/paths.js';

const BENCH = resolve(REPOSITORY_ROOT, 'build/native-bench/main.js');
const EPOCH = 'fakebroker';
const FAULT_SEQ = 12;
const FAULT_MS = 10_000;
const FALLBACK = 'fan-out-1,fan-out-32,storm,publish';
const SCENARIOS = [
  'send',
  'fan-out-1',
  'fan-out-32',
  'fan-out-slow',
  'fan-out-2-edges',
  'fan-out-4-edges',
  'storm',
  'subscribers-10',
  'subscribers-10000',
  'streams-10',
  'streams-10000',
  'publish',
  'publish-ndjson',
  'publish-msgpack',
  'publish-producer',
  'publish-token',
  'publish-64',
  'publish-64-durable',
  'batch-64',
  'batch-64-durable',
  'replay-ring',
  'replay-log',
  'live-quiet',
  'live-in-storm',
  'live-token',
  'live-under-attack',
  'idle',
];

interface Outcome {
  code: number | null;
  stdout: string;
  stderr: string;
}

async function run(program: string, args: readonly string[], env = process.env): Promise<Outcome> {
  const child = spawn(program, args, { stdio: ['ignore', 'pipe', 'pipe'], env });
  const [stdout, stderr, [code]] = await Promise.all([
    text(child.stdout),
    text(child.stderr),
    once(child, 'close'),
  ]);
  return { code, stdout, stderr };
}

/** What the fake broker does with each event. */
interface Behaviour {
  frame(seq: number, data: string): string;
  /** Frames go out in chunks of so many bytes. */
  chunkBytes?: number;
  /** Instead of a stream. */
  refuse?: (response: ServerResponse) => void;
}

const frameOf = (seq: number, data: string) => `id: ${EPOCH}.${seq}\ndata: ${data}\n\n`;

/** Speaks as much of the contract as the load client needs, and misbehaves on demand. */
class FakeBroker {
  readonly #behaviour: Behaviour;
  readonly #server = createServer((request, response) => this.#answer(request, response));
  readonly #subscribers: ServerResponse[] = [];
  readonly #frames: string[] = [];

  constructor(behaviour: Behaviour) {
    this.#behaviour = behaviour;
  }

  async listen(): Promise<number> {
    this.#server.listen(0, '127.0.0.1');
    await once(this.#server, 'listening');
    return (this.#server.address() as AddressInfo).port;
  }

  async close(): Promise<void> {
    this.#server.close();
    this.#server.closeAllConnections();
    await once(this.#server, 'close');
  }

  #answer(request: IncomingMessage, response: ServerResponse): void {
    if (request.method === 'POST') {
      void text(request).then((data) => this.#publish(data, response));
    } else if (this.#behaviour.refuse) {
      this.#behaviour.refuse(response);
    } else {
      this.#subscribe(request, response);
    }
  }

  #publish(data: string, response: ServerResponse): void {
    const seq = this.#frames.length + 1;
    const frame = this.#behaviour.frame(seq, data);
    this.#frames.push(frame);
    for (const subscriber of this.#subscribers) this.#write(subscriber, frame);
    response
      .setHeader('Gapless-Cursor', `${EPOCH}.${seq}`)
      .end(JSON.stringify({ epoch: EPOCH, first: seq, last: seq }));
  }

  #subscribe(request: IncomingMessage, response: ServerResponse): void {
    const cursor = request.headers['last-event-id'];
    const seq = cursor === undefined ? this.#frames.length : Number(String(cursor).split('.')[1]);
    this.#subscribers.push(response);
    this.#write(response, `retry: 2000\n\nid: ${EPOCH}.${seq}\n\n${this.#frames.slice(seq).join('')}`);
  }

  #write(response: ServerResponse, bytes: string): void {
    const step = this.#behaviour.chunkBytes ?? bytes.length;
    for (let at = 0; at < bytes.length; at += step) response.write(bytes.slice(at, at + step));
  }
}

const noCompiler = spawnSync('cc', ['--version']).error !== undefined;
const skip = noCompiler && !process.env.CI ? 'the load client needs a C compiler' : false;

describe('the bench', { skip }, () => {
  let loadClient = '';

  before(async () => {
    const compiled = await run(process.execPath, [BENCH, '--compile']);
    assert.equal(compiled.code, 0, compiled.stderr);
    loadClient = compiled.stdout.trim();
  });

  /** A fault ends the load at once, so a run that waits for one may be long. */
  async function loadAgainst(
    behaviour: Behaviour,
    mode: string,
    durationMs = 100,
    more: readonly string[] = [],
  ): Promise<Outcome> {
    const broker = new FakeBroker(behaviour);
    const port = await broker.listen();
    const sizes = ['--subscribers', '3', '--events', '30', '--duration-ms', String(durationMs)];
    const outcome = await run(loadClient, [mode, '--port', String(port), ...sizes, ...more]);
    await broker.close();
    return outcome;
  }

  describe('at smoke sizes', () => {
    let directory = '';
    before(async () => {
      directory = await mkdtemp(join(tmpdir(), 'gapless-bench-'));
    });
    after(() => rm(directory, { recursive: true }));

    test('measures every scenario against the real broker and verifies every id', async () => {
      const file = join(directory, 'result.json');
      const { code, stderr } = await run(process.execPath, [BENCH, '--smoke', '--json', file]);
      assert.equal(code, 0, stderr);
      const { scenarios, environment } = JSON.parse(await readFile(file, 'utf8'));
      const medians = new Map<string, number>(
        scenarios.map((scenario: { name: string; spread: { median: number } }) => [
          scenario.name,
          scenario.spread.median,
        ]),
      );
      assert.deepEqual([...medians.keys()], SCENARIOS);
      for (const name of SCENARIOS.filter((each) => each !== 'idle')) {
        assert.ok((medians.get(name) ?? 0) > 0, `${name} has a number`);
      }
      assert.equal(environment.node, process.version);
    });
  });

  test('does without a compiler, with the load client in TypeScript', async () => {
    const env = { ...process.env, BENCH_LOAD: 'fallback' };
    const { code, stdout, stderr } = await run(process.execPath, [BENCH, '--smoke', '--only', FALLBACK], env);
    assert.equal(code, 0, stderr);
    for (const name of FALLBACK.split(',')) assert.match(stdout, new RegExp(`^${name} `, 'm'));
  });

  test('puts peers through the same loads, and verifies what they deliver', async () => {
    const peers = 'gapless-1,node-http-32,better-sse-p99';
    const { code, stdout, stderr } = await run(process.execPath, [
      BENCH,
      '--smoke',
      '--peers',
      '--only',
      peers,
    ]);
    assert.equal(code, 0, stderr);
    for (const name of peers.split(',')) assert.match(stdout, new RegExp(`^${name} `, 'm'));
  });

  test('measures brokers that share a log', { skip: NATS_SKIP }, async () => {
    const names = 'publish-2-on-1,latency-2-on-1';
    const { code, stdout, stderr } = await run(process.execPath, [
      BENCH,
      '--smoke',
      '--log',
      '--only',
      names,
    ]);
    assert.equal(code, 0, stderr);
    for (const name of names.split(',')) assert.match(stdout, new RegExp(`^${name} `, 'm'));
  });

  test('refuses an unknown flag with the usage and exit code 2', async () => {
    const { code, stderr } = await run(process.execPath, [BENCH, '--no-such-flag']);
    assert.equal(code, 2);
    assert.match(stderr, /usage: npm run bench/);
  });

  describe('the load client in mode attack', () => {
    const attack = (refuse: (response: ServerResponse) => void): Promise<Outcome> =>
      loadAgainst({ frame: frameOf, refuse }, 'attack', 100, [
        '--header',
        `Authorization: Bearer e.e.${'s'.repeat(43)}`,
      ]);

    test('counts what a faithful server refuses', async () => {
      const { code, stdout, stderr } = await attack((response) => response.writeHead(401).end('{}'));
      assert.equal(code, 0, stderr);
      const [began, ended] = stdout
        .trim()
        .split('\n')
        .map((line) => JSON.parse(line));
      assert.equal(began.began, 1);
      assert.ok(ended.refusedTokens > 0);
      assert.equal(ended.halfOpen, 3);
    });

    test('fails when a forged token is let in', async () => {
      const { code, stdout, stderr } = await attack((response) => response.writeHead(200).end('{}'));
      assert.equal(code, 1, stdout);
      assert.match(stderr, /a forged token: HTTP\/1\.1 200 OK/);
    });
  });

  for (const mode of ['fanout', 'latency', 'storm']) {
    describe(`the load client in mode ${mode}`, () => {
      test('counts what a faithful server delivers', async () => {
        const { code, stdout, stderr } = await loadAgainst({ frame: frameOf }, mode);
        assert.equal(code, 0, stderr);
        const report = JSON.parse(stdout);
        assert.equal(report.deliveries, 3 * (mode === 'storm' ? report.events : report.publishes));
      });

      for (const chunkBytes of [1, 2, 7, 64]) {
        test(`reads frames that are cut into chunks of ${chunkBytes} bytes`, async () => {
          const { code, stderr } = await loadAgainst({ frame: frameOf, chunkBytes }, mode);
          assert.equal(code, 0, stderr);
        });
      }

      test('takes comments between frames for what they are', async () => {
        const { code, stderr } = await loadAgainst(
          { frame: (seq, data) => `:\n\n${frameOf(seq, data)}: still here\n\n`, chunkBytes: 3 },
          mode,
        );
        assert.equal(code, 0, stderr);
      });

      const faults: [string, Behaviour, RegExp][] = [
        [
          'an event that is missing',
          { frame: (seq, data) => (seq === FAULT_SEQ ? '' : frameOf(seq, data)) },
          /gap: expected fakebroker\.12, got fakebroker\.13/,
        ],
        [
          'an event that comes twice',
          { frame: (seq, data) => frameOf(seq === FAULT_SEQ ? seq - 1 : seq, data) },
          /duplicate: expected fakebroker\.12, got fakebroker\.11/,
        ],
        [
          'two events in the wrong order',
          {
            frame: (seq, data) =>
              frameOf(seq === FAULT_SEQ ? seq + 1 : seq === FAULT_SEQ + 1 ? seq - 1 : seq, data),
          },
          /gap: expected fakebroker\.12, got fakebroker\.13/,
        ],
        [
          'data that is not what was published',
          { frame: (seq, data) => frameOf(seq, seq === FAULT_SEQ ? data.replace('fox', 'cat') : data) },
          /of the frame of fakebroker\.12 is wrong/,
        ],
        [
          'another epoch',
          {
            frame: (seq, data) =>
              frameOf(seq, data).replace(EPOCH, seq === FAULT_SEQ ? 'another0epoch' : EPOCH),
          },
          /the frame of fakebroker\.12 is wrong/,
        ],
        [
          'a refusal',
          {
            frame: frameOf,
            refuse: (response) => response.writeHead(410).end('{"code":"resume_unavailable"}'),
          },
          /410 Gone[\s\S]*resume_unavailable/,
        ],
        [
          'a connection that ends',
          { frame: frameOf, refuse: (response) => response.destroy() },
          /closed|reset/,
        ],
      ];
      for (const [fault, behaviour, message] of faults) {
        for (const chunkBytes of [1000, 1]) {
          test(`fails without a number on ${fault}, in chunks of at most ${chunkBytes}`, async () => {
            const { code, stdout, stderr } = await loadAgainst({ ...behaviour, chunkBytes }, mode, FAULT_MS);
            assert.equal(code, 1, stdout);
            assert.equal(stdout, '');
            // Cut into single bytes, a wrong digit is seen before the whole id is there to be named.
            if (chunkBytes > 1) assert.match(stderr, message);
          });
        }
      }
    });
  }
});
