/**
 * The directory that a broker keeps its log in: made when it is not there, refused when this version cannot read it,
 * and locked against a second process.
 */

import {
  accessSync,
  constants,
  existsSync,
  mkdirSync,
  readFileSync,
  renameSync,
  statSync,
  writeFileSync,
} from 'node:fs';
import { dirname, join, resolve } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { z } from 'zod';
import { STORE_FILE, STORE_FILES, syncDirectory } from '../lmdb/store-file.js';
import { DirectoryInUse, DirectoryLock } from './directory-lock.js';

/** A directory that cannot be used. The message is one line: which, why, and what to do. */
export class DataDirectoryError extends Error {
  override readonly name = 'DataDirectoryError';
}

/** Of what lies in the directory. Goes up when another version could not read it any more. */
const FORMAT = 2;
const VERSION_FILE = 'VERSION';
/** `isNew`: there was no store yet. Without it a store that is not there has been lost, and is not begun anew. */
const versionSchema = z.looseObject({ format: z.int().min(1), isNew: z.boolean().optional() });
const DIRECTORY_MODE = 0o700;

export interface DataDirectory {
  /** Absolute. */
  readonly path: string;
  /** Notes that there is a store now. Before it is given its first event. */
  storeIsMade(): void;
  /** Gives it up for the next. After the log was disposed of. */
  close(): Promise<void>;
}

/** How long to wait for a directory that another process has, which is about to end. */
export interface Patience {
  readonly waitMs: number;
  /** Told once, if there is something to wait for. @param pid null when the owner did not say. */
  readonly waiting: (pid: number | null) => void;
}

const IMPATIENT: Patience = { waitMs: 0, waiting: () => undefined };
/** How often is looked whether the owner has gone. */
const LOOK_MS = 50;

/**
 * Makes or takes up a data directory. It is this process's until `close`, or until the process ends in whatever way.
 *
 * @throws {DataDirectoryError}
 */
export async function openDataDirectory(path: string, patience = IMPATIENT): Promise<DataDirectory> {
  const directory = resolve(path);
  let lock: DirectoryLock | null = null;
  let isNew = false;
  try {
    makeDirectory(directory);
    lock = await acquireWithin(directory, patience);
    isNew = checkVersion(directory);
    for (const name of STORE_FILES) requireAccess(join(directory, name));
  } catch (error) {
    await lock?.release();
    throw asDirectoryError(error, directory);
  }
  return {
    path: directory,
    storeIsMade: () => {
      if (isNew) writeVersion(directory, { format: FORMAT });
      isNew = false;
    },
    close: () => lock.release(),
  };
}

/** @throws {DirectoryInUse} when it is still another's in the end. */
async function acquireWithin(directory: string, { waitMs, waiting }: Patience): Promise<DirectoryLock> {
  const looksMax = Math.ceil(waitMs / LOOK_MS);
  for (let look = 0; ; look++) {
    try {
      return await DirectoryLock.acquire(directory);
    } catch (error) {
      if (!(error instanceof DirectoryInUse) || look === looksMax) throw error;
      if (look === 0) waiting(error.pid);
      await delay(LOOK_MS);
    }
  }
}

function makeDirectory(directory: string): void {
  // Asked beforehand, for the reason is lost when several directories are made.
  const there = nearestThere(directory);
  if (!statSync(there).isDirectory()) throw notDirectory(directory);
  accessSync(there, constants.W_OK | constants.X_OK);
  const made = mkdirSync(directory, { recursive: true, mode: DIRECTORY_MODE });
  if (made !== undefined) syncMade(directory, made);
  accessSync(directory, constants.R_OK | constants.W_OK | constants.X_OK);
}

function nearestThere(path: string): string {
  let there = path;
  while (!existsSync(there) && dirname(there) !== there) there = dirname(there);
  return there;
}

/** The directories from `first` down to the last were made: each is an entry of the one above. */
function syncMade(last: string, first: string): void {
  for (let made = last; made.length >= first.length; made = dirname(made)) syncDirectory(dirname(made));
}

/** @returns whether there need not be a store. */
function checkVersion(directory: string): boolean {
  const file = join(directory, VERSION_FILE);
  const storeBytes = statSync(join(directory, STORE_FILE), { throwIfNoEntry: false })?.size;
  if (!existsSync(file)) {
    if (storeBytes !== undefined) {
      throw new DataDirectoryError(
        `${directory} has ${STORE_FILE} but no ${VERSION_FILE}: restore it from a copy`,
      );
    }
    writeVersion(directory, { format: FORMAT, isNew: true });
    return true;
  }
  const { format, isNew = false } = readVersion(file);
  if (format !== FORMAT) {
    const advice = format > FORMAT ? 'use a newer version' : 'use the version that made it';
    throw new DataDirectoryError(
      `${directory} has format ${format}, and this version knows format ${FORMAT}: ${advice}`,
    );
  }
  if (!isNew && !storeBytes) throw storeLost(directory, storeBytes === 0 ? 'empty' : 'missing');
  return isNew;
}

/** Begun anew in silence, it would give ids a second time, and nobody would know what is gone (I3). */
function storeLost(directory: string, how: string): DataDirectoryError {
  return new DataDirectoryError(
    `${join(directory, STORE_FILE)} is ${how}, and with it all events: restore it from a copy, ` +
      `or remove ${VERSION_FILE} and what is left of it to begin with nothing`,
  );
}

function requireAccess(file: string): void {
  if (existsSync(file)) accessSync(file, constants.R_OK | constants.W_OK);
}

function readVersion(file: string): z.infer<typeof versionSchema> {
  const text = readFileSync(file, 'utf8');
  try {
    return versionSchema.parse(JSON.parse(text));
  } catch (cause) {
    const message = `${file} does not say {"format": ${FORMAT}} or the like: is this a data directory of Gapless?`;
    throw new DataDirectoryError(message, { cause });
  }
}

/** Under another name first, so that it is there whole or not at all. */
function writeVersion(directory: string, version: z.infer<typeof versionSchema>): void {
  const file = join(directory, VERSION_FILE);
  writeFileSync(`${file}.new`, `${JSON.stringify(version)}\n`, { flush: true });
  renameSync(`${file}.new`, file);
  syncDirectory(directory);
}

function asDirectoryError(error: unknown, directory: string): unknown {
  if (error instanceof DataDirectoryError) return error;
  if (error instanceof DirectoryInUse) {
    const message = `${directory} is ${error.message}: stop that one, or choose another directory`;
    return new DataDirectoryError(message, { cause: error });
  }
  const { code, path = directory } = error as NodeJS.ErrnoException;
  switch (code) {
    case 'EEXIST':
    case 'ENOTDIR':
      return notDirectory(directory, error);
    case 'EACCES':
    case 'EPERM':
      return refused(path, 'this user may not read and write it: change its owner or mode', error);
    case 'EROFS':
      return refused(
        directory,
        'it is on a read-only file system: choose another, or mount it writable',
        error,
      );
    case 'ENOSPC':
    case 'EDQUOT':
      return refused(directory, 'no space is left: make some', error);
    case 'ENAMETOOLONG':
    case 'EINVAL':
      return refused(directory, 'its path is too long for a socket in it: choose a shorter one', error);
    default:
      return code === undefined ? error : refused(directory, (error as Error).message, error);
  }
}

function notDirectory(directory: string, cause?: unknown): DataDirectoryError {
  return refused(directory, 'it is not a directory: choose another path', cause);
}

function refused(path: string, why: string, cause?: unknown): DataDirectoryError {
  return new DataDirectoryError(`${path} cannot be used, ${why}`, { cause });
}
