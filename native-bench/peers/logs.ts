import { mkdtempSync, rmSync } from 'node:fs';
import { connect } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { findProgram, freePort, type Peer, type RunningPeer, startProgram } from './peer.js';

/** A log that is published to by a protocol of its own. */
export interface LogPeer extends Peer {
  /** Makes it ready for the requests. */
  prepare(port: number): Promise<void>;
  /** What the load client's mode `ask` is told: of `data`, an event. */
  requests(data: string): Readonly<Record<string, string | number>>;
}

/**
 * Redis Streams, in memory: no snapshots, no append-only file, one XADD a request. As many events kept as the broker's
 * default keeps of such, approximately.
 */
export const redis: LogPeer = {
  name: 'redis',
  missing: () => (redisServer() === null ? 'redis-server (Debian: redis-server)' : null),
  async start(core) {
    const port = await freePort();
    const settings = `--port ${port} --bind 127.0.0.1 --save --appendonly no --logfile /dev/null`.split(' ');
    settings.splice(settings.indexOf('--save') + 1, 0, '');
    return startProgram({ command: [redisServer() as string, ...settings], core, port });
  },
  prepare: async () => undefined,
  requests(data) {
    const words = ['XADD', 'bench', 'MAXLEN', '~', '30000', '*', 'data', data];
    const request = `*${words.length}\r\n${words.map((word) => `$${word.length}\r\n${word}\r\n`).join('')}`;
    return { request, 'answer-prefix': '$', 'answer-lines': 2 };
  },
};

/** NATS JetStream, a stream in memory, one replica; each publish waits for its acknowledgement. */
export const nats: LogPeer = {
  name: 'nats',
  missing: () => (natsServer() === null ? 'nats-server (Debian: nats-server)' : null),
  async start(core): Promise<RunningPeer> {
    const port = await freePort();
    const directory = mkdtempSync(join(tmpdir(), 'gapless-bench-nats-'));
    const settings = ['-a', '127.0.0.1', '-p', String(port), '-js', '-sd', directory, '-l', '/dev/null'];
    const running = await startProgram({
      command: [natsServer() as string, ...settings],
      core,
      port,
      env: { GOMAXPROCS: '1' },
    });
    return {
      ...running,
      async stop() {
        await running.stop();
        rmSync(directory, { recursive: true, force: true });
      },
    };
  },
  async prepare(port) {
    const stream = {
      name: 'BENCH',
      subjects: ['bench'],
      storage: 'memory',
      max_msgs: 30_000,
      num_replicas: 1,
    };
    const json = JSON.stringify(stream);
    const ask = `${CONNECT}SUB _INBOX.made 1\r\nPUB $JS.API.STREAM.CREATE.BENCH _INBOX.made ${json.length}\r\n${json}\r\n`;
    const answer = await exchange(port, ask, '"type"');
    if (answer.includes('"error"')) throw new Error(`NATS made no stream: ${answer}`);
  },
  requests(data) {
    return {
      preface: `${CONNECT}SUB _INBOX.@ 1\r\n`,
      request: `PUB bench _INBOX.@ ${data.length}\r\n${data}\r\n`,
      'answer-prefix': 'MSG',
      'answer-lines': 2,
    };
  },
};

const CONNECT = 'CONNECT {"verbose":false}\r\n';

function redisServer(): string | null {
  return findProgram('BENCH_REDIS', 'redis-server');
}

function natsServer(): string | null {
  return findProgram('BENCH_NATS', 'nats-server');
}

/** Sends `request` and resolves with what came once it holds `end`. */
function exchange(port: number, request: string, end: string): Promise<string> {
  return new Promise((resolve, reject) => {
    const socket = connect(port, '127.0.0.1', () => socket.write(request));
    let text = '';
    socket.setEncoding('utf8');
    socket.on('data', (part: string) => {
      text += part;
      if (!text.includes(end)) return;
      socket.destroy();
      resolve(text);
    });
    socket.once('error', reject);
    socket.setTimeout(5000, () => reject(new Error(`no answer from port ${port}`)));
  });
}
