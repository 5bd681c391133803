import { closeSync, constants, fsyncSync, openSync } from 'node:fs';

/** The file of the store, in the data directory. */
export const STORE_FILE = 'events.mdb';

/** Makes the entries of a directory outlive a power failure, which a file's own sync does not. */
export function syncDirectory(directory: string): void {
  const fd = openSync(directory, constants.O_RDONLY);
  try {
    fsyncSync(fd);
  } finally {
    closeSync(fd);
  }
}
