import { readdirSync, readFileSync } from 'node:fs';
import { eventually } from './deadline.js';

/**
 * Stops a process, as SIGSTOP does, and resolves when it has: on a busy machine its threads run on until the one that the
 * signal went to has its turn. SIGCONT has it go on.
 */
export async function standStill(pid: number): Promise<void> {
  process.kill(pid, 'SIGSTOP');
  const threads = `/proc/${pid}/task`;
  await eventually('a process to stand still', () => {
    return readdirSync(threads).every((thread) => isStopped(`${threads}/${thread}/stat`));
  });
}

/** The state comes after the name, which may have anything in it (proc_pid_stat(5)). */
function isStopped(file: string): boolean {
  const stat = readFileSync(file, 'latin1');
  return stat.slice(stat.lastIndexOf(')')).startsWith(') T');
}
