import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { createInterface } from 'node:readline';
import type { Readable } from 'node:stream';
import { fileURLToPath } from 'node:url';

const START_MS_MAX = 60_000;
const STOP_MS_MAX = 10_000;
const LOG_LINES_MAX = 20;
const THIS_BUILD = fileURLToPath(new URL('../../dist/main.js', import.meta.url));
/** Nothing is shed: what another program takes of the machine makes a number worse, and a run no failure. */
const FLAGS =
  '--port 0 --host 127.0.0.1 --memory 256MiB --log-level info --shed-replays-ms 0 --shed-subscriptions-ms 0'.split(
    ' ',
  );

/** A broker of its own for the bench. */
export interface BrokerProcess {
  readonly pid: number;
  readonly port: number;
  /** A line for the head of each request; null where everybody may do everything. */
  readonly authorization: string | null;
  /** Resident memory, in bytes. */
  rssBytes(): number;
  /** Rejects unless the broker says that the stream is gone. */
  deleteStream(stream: string): Promise<void>;
  /** The last lines of its log. */
  logTail(): string;
  stop(): Promise<void>;
}

/**
 * Starts `mainFile serve` (null: this checkout's build), pinned to `core` with all its threads unless that is
 * null, with more flags. Rejects, with the log's end in the message, if it does not say that it listens.
 */
export async function startBroker(options: {
  mainFile: string | null;
  core: number | null;
  flags: readonly string[];
  /** For a broker that takes only who has one. */
  token: string | null;
}): Promise<BrokerProcess> {
  const { mainFile, core, flags, token } = options;
  const broker = [process.execPath, mainFile ?? THIS_BUILD, 'serve', ...FLAGS, ...flags];
  // taskset becomes the command that it runs, so the process id is the broker's.
  const [program = '', ...args] = core === null ? broker : ['taskset', '-c', String(core), ...broker];
  const child = spawn(program, args, { stdio: ['ignore', 'pipe', 'pipe'] });
  endWithBench(child);
  const log = keepTail([child.stdout, child.stderr]);
  const port = await listeningPort(child, child.stdout).catch((cause: Error) => {
    child.kill('SIGKILL');
    throw new Error(`the broker did not start: ${cause.message}\n${log.join('\n')}`, { cause });
  });
  const pid = child.pid ?? 0;
  return {
    pid,
    port,
    authorization: token === null ? null : `Authorization: Bearer ${token}`,
    rssBytes: () => rssBytesIn(readFileSync(`/proc/${pid}/status`, 'utf8')),
    deleteStream: (stream) => deleteStream(port, stream, token),
    logTail: () => log.join('\n'),
    stop: () => stop(child),
  };
}

function endWithBench(child: ChildProcess): void {
  const kill = () => child.kill('SIGKILL');
  process.once('exit', kill);
  child.once('close', () => process.off('exit', kill));
}

/** The returned array always holds the last lines. */
function keepTail(streams: readonly Readable[]): string[] {
  const lines: string[] = [];
  for (const stream of streams) {
    createInterface(stream).on('line', (line) => {
      lines.push(line);
      if (lines.length > LOG_LINES_MAX) lines.shift();
    });
  }
  return lines;
}

function listeningPort(child: ChildProcess, stdout: Readable): Promise<number> {
  return new Promise((resolve, reject) => {
    const timer = setTimeout(() => reject(new Error(`silent for ${START_MS_MAX} ms`)), START_MS_MAX);
    createInterface(stdout).on('line', (line) => {
      const port = portIn(line);
      if (port === null) return;
      clearTimeout(timer);
      resolve(port);
    });
    child.once('error', reject);
    child.once('close', (code, signal) => {
      clearTimeout(timer);
      reject(new Error(`ended with ${signal ?? `exit code ${code}`}`));
    });
  });
}

/** The port in the log line `{"msg":"listening","port":8080,…}`, null in any other line. */
function portIn(line: string): number | null {
  if (!line.includes('"listening"')) return null;
  const { msg, port } = JSON.parse(line) as { msg?: unknown; port?: unknown };
  return msg === 'listening' && typeof port === 'number' ? port : null;
}

function rssBytesIn(status: string): number {
  const kibibytes = /^VmRSS:\s+(\d+) kB$/m.exec(status)?.[1];
  if (kibibytes === undefined) throw new Error('no VmRSS in the process status');
  return Number(kibibytes) * 1024;
}

async function deleteStream(port: number, stream: string, token: string | null): Promise<void> {
  const headers: Record<string, string> = token === null ? {} : { Authorization: `Bearer ${token}` };
  const answer = await fetch(`http://127.0.0.1:${port}/v1/streams/${stream}`, { method: 'DELETE', headers });
  if (!answer.ok) throw new Error(`DELETE of stream ${stream}: ${answer.status} ${await answer.text()}`);
}

async function stop(child: ChildProcess): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return;
  const closed = once(child, 'close');
  child.kill('SIGTERM');
  const timer = setTimeout(() => child.kill('SIGKILL'), STOP_MS_MAX);
  await closed;
  clearTimeout(timer);
}
