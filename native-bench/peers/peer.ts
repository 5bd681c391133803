import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { accessSync, constants } from 'node:fs';
import { connect, createServer } from 'node:net';
import { delimiter, join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';

const START_MS_MAX = 10_000;
const POLL_MS = 50;

/** A server that runs until it is stopped. */
export interface RunningPeer {
  /** Of the process that does the work. */
  readonly pid: number;
  readonly port: number;
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
  /** The process that does the work, null until it is there; the one that was started unless said. */
  readonly worker?: (pid: number) => number | null;
}

/** Starts a program and resolves when its port takes connections. */
export async function startProgram({ command, core, port, env, worker }: Program): Promise<RunningPeer> {
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
    pid: worker === undefined ? pid : await workerOf(pid, worker),
    port,
    async stop() {
      const closed = once(child, 'close');
      child.kill('SIGTERM');
      await closed;
    },
  };
}

async function workerOf(pid: number, worker: (pid: number) => number | null): Promise<number> {
  for (let waitedMs = 0; waitedMs < START_MS_MAX; waitedMs += POLL_MS) {
    const found = worker(pid);
    if (found !== null) return found;
    await sleep(POLL_MS);
  }
  throw new Error(`process ${pid} has started no worker`);
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
