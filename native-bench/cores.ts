import { spawnSync } from 'node:child_process';
import { readFileSync } from 'node:fs';

/** The core that the server side has to itself, and the one for the load. */
export interface Cores {
  readonly server: number;
  readonly load: number;
}

/** Null if this process may not use two cores, or cannot pin another: then nothing is pinned. */
export function chooseCores(): Cores | null {
  const [server, load] = allowedCores(readFileSync('/proc/self/status', 'utf8'));
  if (server === undefined || load === undefined) return null;
  if (spawnSync('taskset', ['--version']).status !== 0) return null;
  return { server, load };
}

/** The cores in a status file of proc(5): `Cpus_allowed_list: 0-2,5` gives 0, 1, 2, 5. */
export function allowedCores(status: string): number[] {
  const list = /^Cpus_allowed_list:\s*(.*)$/m.exec(status)?.[1] ?? '';
  return list.split(',').flatMap((range) => {
    const [first = Number.NaN, last = first] = range.split('-').map(Number);
    return Array.from({ length: last - first + 1 || 0 }, (_, i) => first + i);
  });
}
