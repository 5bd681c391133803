import { spawnSync } from 'node:child_process';
import { availableParallelism, cpus, release, totalmem } from 'node:os';

/** Where and on what a result was measured; without it a number says nothing. */
export interface Environment {
  readonly date: string;
  readonly gitSha: string;
  /** Files differ from that commit. */
  readonly gitDirty: boolean;
  readonly node: string;
  readonly cpu: string;
  readonly cores: number;
  readonly memoryBytes: number;
  readonly kernel: string;
}

export function describeEnvironment(): Environment {
  return {
    date: new Date().toISOString(),
    gitSha: git('rev-parse', '--short=12', 'HEAD') || 'unknown',
    gitDirty: git('status', '--porcelain') !== '',
    node: process.version,
    cpu: cpus()[0]?.model ?? 'unknown',
    cores: availableParallelism(),
    memoryBytes: totalmem(),
    kernel: release(),
  };
}

function git(...args: string[]): string {
  const result = spawnSync('git', args, { cwd: import.meta.dirname, encoding: 'utf8' });
  return result.status === 0 ? result.stdout.trim() : '';
}
