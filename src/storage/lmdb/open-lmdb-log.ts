/**
 * Opens the event log of a data directory.
 */

import { join } from 'node:path';
import { LmdbLog } from './lmdb-log.js';
import { asLogError, openStore } from './lmdb-store.js';
import { checkStore } from './store-check.js';
import { STORE_FILE, syncDirectory } from './store-file.js';

export interface LmdbLogOptions {
  /** An existing directory, locked for this process. */
  readonly directory: string;
  /** Whether a commit returns only when the medium has it; if not, `sync` is called from time to time. */
  readonly syncEachCommit: boolean;
}

/**
 * Opens the store of a data directory, or makes it.
 *
 * @throws {LogCorruption} when what is there cannot be trusted.
 * @throws {LogError}
 */
export function openLmdbLog({ directory, syncEachCommit }: LmdbLogOptions): LmdbLog {
  const path = join(directory, STORE_FILE);
  checkStore(path);
  try {
    const log = new LmdbLog(openStore(directory, { readOnly: false }), syncEachCommit);
    syncDirectory(directory);
    return log;
  } catch (cause) {
    throw asLogError(cause, path);
  }
}
