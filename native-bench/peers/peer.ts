import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { accessSync, constants } from 'node:fs';
import { readFile } from 'node:fs/promises';
import { connect, createServer } from 'node:net';
import { delimiter, join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';

const START_MS_MAX = 10_000;
const POLL_MS = 50;

/** A server that runs until it is stopped. */
export interface RunningPeer {
  /** Of the processes that do the work. */
  readonly pids: readonly number[];
  readonly port: number;
  /** Where publishes go, if that is another. */
  readonly publishPort?: number;
  stop(): Promise<void>;
}

/** Something people would use instead. How it is configured, and why that is fair, stands in its file. */
export interface Peer {
  readonly name: string;
  /** Null if it can run here, or what is missing. */
  missing(): string | null;
  /** @param core pinned to, unless null. */
  start(core: number | null): Promise<RunningPeer>;
}

/** The file that a variable names, or the first of that name on the path; null where there is none. */
export function findProgram(variable: string, name: string): string | null {
  const named = process.env[variable];
  if (named !== undefined) return named;
  const folders = [...(process.env.PATH ?? '').split(delimiter), '/usr/sbin', '/usr/local/sbin'];
  return folders.map((folder) => join(folder, name)).find(isExecutable) ?? null;
}

function isExecutable(file: string): boolean {
  try {
    accessSync(file, constants.X_OK);
    return true;
  } catch {
    return false;
  }
}

export async function freePort(): Promise<number> {
  const server = createServer().listen(0, '127.0.0.1');
  await once(server, 'listening');
  const address = server.address();
  server.close();
  await once(server, 'close');
  if (address === null || typeof address === 'string') throw new Error('no port');
  return address.port;
}

export interface Program {
  readonly command: readonly string[];
  readonly core: number | null;
  readonly port: number;
  readonly env?: Readonly<Record<string, string>>;
  /** How many processes it starts that do the work; 0, if it does that itself, unless said. */
  readonly workers?: number;
}

/** Starts a program and resolves when its port takes connections. */
export async function startProgram(program: Program): Promise<RunningPeer> {
  const { command, core, port, env, workers = 0 } = program;
  const pinned = core === null ? command : ['taskset', '-c', String(core), ...command];
  const child = spawn(pinned[0] as string, pinned.slice(1), {
    stdio: ['ignore', 'ignore', 'inherit'],
    env: { ...process.env, ...env },
  });
  const kill = () => child.kill('SIGKILL');
  process.once('exit', kill);
  child.once('close', () => process.off('exit', kill));
  await untilListening(child, port);
  const pid = child.pid ?? 0;
  return {
    pids: workers === 0 ? [pid] : await workersOf(pid, workers),
    port,
    async stop() {
      const closed = once(child, 'close');
      child.kill('SIGTERM');
      await closed;
    },
  };
}

async function workersOf(pid: number, count: number): Promise<number[]> {
  for (let waitedMs = 0; waitedMs < START_MS_MAX; waitedMs += POLL_MS) {
    const children = await readFile(`/proc/${pid}/task/${pid}/children`, 'utf8');
    const found = children.split(' ').filter((word) => word !== '');
    if (found.length >= count) return found.map(Number);
    await sleep(POLL_MS);
  }
  throw new Error(`process ${pid} has not started ${count} others`);
}

async function untilListening(child: ChildProcess, port: number): Promise<void> {
  for (let waitedMs = 0; waitedMs < START_MS_MAX; waitedMs += POLL_MS) {
    if (child.exitCode !== null) throw new Error(`${child.spawnfile} ended with exit code ${child.exitCode}`);
    if (await takesConnections(port)) return;
    await sleep(POLL_MS);
  }
  child.kill('SIGKILL');
  throw new Error(`${child.spawnfile} does not listen on port ${port}`);
}

function takesConnections(port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = connect(port, '127.0.0.1');
    socket.once('connect', () => {
      socket.destroy();
      resolve(true);
    });
    socket.once('error', () => resolve(false));
  });
}
