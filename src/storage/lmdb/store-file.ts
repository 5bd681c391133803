import { closeSync, constants, fsyncSync, openSync } from 'node:fs';

/** The file of the store, in the data directory. */
export const STORE_FILE = 'events.mdb';

/** Says that commits do not wait for the disk (unsynced-mark.ts). */
export const MARK_FILE = 'UNSYNCED';

/** All that belongs to a store, by its names in the data directory: the second is LMDB's own, for its readers. */
export const STORE_FILES = [STORE_FILE, `${STORE_FILE}-lock`, MARK_FILE] as const;

/** Makes the entries of a directory outlive a power failure, which a file's own sync does not. */
export function syncDirectory(directory: string): void {
  const fd = openSync(directory, constants.O_RDONLY);
  try {
    fsyncSync(fd);
  } finally {
    closeSync(fd);
  }
}
