/**
 * What the machine gives the broker: limits of the process, memory, the disk of the durable log, and those settings of
 * the kernel that decide how many connections there can be. Nothing here changes anything, or takes a lock.
 */

import { readdirSync, readFileSync, statfsSync, statSync } from 'node:fs';
import { availableParallelism, freemem, release, totalmem } from 'node:os';
import { join } from 'node:path';
import type { Config } from '../config/schema.js';
import { connectionBounds } from '../server/bounds.js';

export interface Limits {
  /** Null: the system does not say. */
  readonly descriptorsSoft: number | null;
  readonly descriptorsHard: number | null;
  /** Connections in use that this process could have, by the settings and the descriptors; null: no bound. */
  readonly connectionsInUseMax: number | null;
}

export interface Machine {
  readonly cores: number;
  readonly memoryBytes: number;
  readonly memoryFreeBytes: number;
  /** Of the container; null: none that is known. */
  readonly memoryLimitBytes: number | null;
  readonly kernel: string;
  readonly glibc: string | null;
}

export interface Disk {
  readonly directory: string;
  /** What kept it from being looked at; null: nothing. */
  readonly problem: string | null;
  readonly freeBytes: number | null;
  readonly totalBytes: number | null;
  /** Of the file system, as the kernel numbers it. */
  readonly type: string | null;
  /** Names and sizes of the broker's files. */
  readonly files: readonly { readonly name: string; readonly bytes: number }[];
}

/** Files of the kernel that are looked at, and nothing else of it. */
const KERNEL_FILES = [
  'net/core/somaxconn',
  'net/ipv4/tcp_max_syn_backlog',
  'net/ipv4/ip_local_port_range',
  'net/ipv4/tcp_mem',
  'net/ipv4/tcp_wmem',
  'net/ipv4/tcp_rmem',
  'fs/file-max',
  'fs/nr_open',
  'vm/overcommit_memory',
  'vm/max_map_count',
  'vm/swappiness',
] as const;

/** What a broker has in its data directory; whatever else lies there is nobody's business. */
const OWN_FILE = /^(VERSION|events\.|lock[.-])/;

export function limitsOf(config: Config): Limits {
  const match = /^Max open files\s+(\d+)\s+(\d+)/m.exec(readText('/proc/self/limits') ?? '');
  const { inUseMax } = connectionBounds(config);
  return {
    descriptorsSoft: match === null ? null : Number(match[1]),
    descriptorsHard: match === null ? null : Number(match[2]),
    connectionsInUseMax: Number.isFinite(inUseMax) ? inUseMax : null,
  };
}

export function machine(): Machine {
  const limit =
    readText('/sys/fs/cgroup/memory.max') ?? readText('/sys/fs/cgroup/memory/memory.limit_in_bytes');
  const limitBytes = Number(limit ?? Number.NaN);
  const { header } = process.report.getReport() as unknown as { header: { glibcVersionRuntime?: string } };
  return {
    cores: availableParallelism(),
    memoryBytes: totalmem(),
    memoryFreeBytes: freemem(),
    memoryLimitBytes: limitBytes < totalmem() ? limitBytes : null,
    kernel: release(),
    glibc: header.glibcVersionRuntime ?? null,
  };
}

/** By the name under `/proc/sys`; what this system does not have is left out. */
export function kernelSettings(): Record<string, string> {
  const found = KERNEL_FILES.map((name) => [name, readText(`/proc/sys/${name}`)] as const);
  return Object.fromEntries(found.flatMap(([name, text]) => (text === null ? [] : [[name, text]])));
}

export function diskOf(directory: string): Disk {
  try {
    const { bavail, blocks, bsize, type } = statfsSync(directory);
    const files = readdirSync(directory)
      .filter((name) => OWN_FILE.test(name))
      .sort()
      .map((name) => ({ name, bytes: statSync(join(directory, name)).size }));
    const hex = `0x${type.toString(16)}`;
    return {
      directory,
      problem: null,
      freeBytes: bavail * bsize,
      totalBytes: blocks * bsize,
      type: hex,
      files,
    };
  } catch (error) {
    const problem = (error as Error).message;
    return { directory, problem, freeBytes: null, totalBytes: null, type: null, files: [] };
  }
}

function readText(path: string): string | null {
  try {
    return readFileSync(path, 'utf8').trim();
  } catch {
    return null;
  }
}
