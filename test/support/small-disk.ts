import { spawnSync } from 'node:child_process';
import { makeDirectory, removeDirectory } from './durable-broker.js';

/** Why a test is skipped where there is none. */
export const NO_SMALL_DISK = 'mounting a small file system needs root';

/** A disk of so many MiB, in memory; null where nothing may be mounted. */
export function mountSmallDisk(mib: number): string | null {
  const disk = makeDirectory();
  if (spawnSync('mount', ['-t', 'tmpfs', '-o', `size=${mib}m`, 'tmpfs', disk]).status === 0) return disk;
  removeDirectory(disk);
  return null;
}

/** After whoever used it has ended. */
export function unmountDisk(disk: string): void {
  if (spawnSync('umount', [disk]).status === 0) removeDirectory(disk);
}
