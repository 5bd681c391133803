/**
 * A file that says: commits here do not wait for the disk. If the machine goes down meanwhile, the last of them may be
 * missing, and their ids would be given to other events (I3). Whoever finds the mark of another boot must not trust
 * the positions. A process that was killed on a machine that goes on lost nothing: the system has its pages.
 */

import { closeSync, fsyncSync, openSync, readFileSync, rmSync, writeSync } from 'node:fs';
import { join } from 'node:path';
import { MARK_FILE, syncDirectory } from './store-file.js';

const BOOT_ID_FILE = '/proc/sys/kernel/random/boot_id';
const MODE = 0o600;

export class UnsyncedMark {
  readonly #directory: string;
  readonly #path: string;

  constructor(directory: string) {
    this.#directory = directory;
    this.#path = join(directory, MARK_FILE);
  }

  /** Whether commits may be missing since the mark was set. */
  get mayHaveLost(): boolean {
    const markedBoot = readText(this.#path);
    if (markedBoot === null) return false;
    // Where the system does not say which boot this is, it may be another one.
    const boot = readText(BOOT_ID_FILE);
    return boot === null || boot !== markedBoot;
  }

  /** Before the first commit that does not wait. */
  set(): void {
    const file = openSync(this.#path, 'w', MODE);
    writeSync(file, readText(BOOT_ID_FILE) ?? '');
    fsyncSync(file);
    closeSync(file);
    // Without it the file could be missing when it is needed.
    syncDirectory(this.#directory);
  }

  /** After everything is on the disk. */
  clear(): void {
    rmSync(this.#path, { force: true });
  }
}

function readText(path: string): string | null {
  try {
    return readFileSync(path, 'utf8');
  } catch {
    return null;
  }
}
