/**
 * The LMDB environment of a data directory and what lies in it. The writer opens it first, in one thread; readers open
 * the same one in any thread of its process, where all share one memory map.
 *
 * Databases, by name; the keys are those of store-keys.ts:
 *   streams    stream key   -> record (stream-record.ts), subscriber key -> what it has (subscriber-record.ts)
 *   blocks     block key    -> block (block.ts)
 *   producers  producer key -> record with a checksum (producer-store.ts)
 */

import { statfsSync } from 'node:fs';
import { dirname, join } from 'node:path';
import {
  type Database,
  open,
  type RangeIterable,
  type RootDatabase,
  type RootDatabaseOptionsWithPath,
} from 'lmdb';
import { InvariantError } from '../../assert.js';
import { LogCorruption, LogError, type LogId } from '../event-log.js';
import { STORE_FILE } from './store-file.js';
import { blocksEnd, blocksFrom, idOfKey, subscriberOfKey } from './store-keys.js';

export const STREAMS = 'streams';
export const BLOCKS = 'blocks';
export const PRODUCERS = 'producers';

export interface LmdbStore {
  readonly path: string;
  readonly root: RootDatabase<Buffer, Buffer>;
  readonly streams: Database<string, Buffer>;
  readonly blocks: Database<Buffer, Buffer>;
  readonly producers: Database<Buffer, Buffer>;
}

/** Address space, not memory or disk; the file grows as it is written to. */
export const MAP_BYTES = 2 ** 40;
/** The root names the three databases; a little room, so that a newer version may add some. */
const DATABASES_MAX = 8;

/** @param readOnly for readers: nothing can be written through what is returned. */
export function openStore(directory: string, { readOnly }: { readOnly: boolean }): LmdbStore {
  const path = join(directory, STORE_FILE);
  const options: RootDatabaseOptionsWithPath & { permissionsMode: number } = {
    path,
    noSubdir: true,
    encoding: 'binary',
    keyEncoding: 'binary',
    readOnly,
    // With it a commit would be visible before it is durable (I4).
    overlappingSync: false,
    mapSize: MAP_BYTES,
    maxDbs: DATABASES_MAX,
    permissionsMode: 0o600,
  };
  const root = open<Buffer, Buffer>(options);
  return {
    path,
    root,
    streams: root.openDB<string, Buffer>({ name: STREAMS, encoding: 'string', keyEncoding: 'binary' }),
    blocks: root.openDB<Buffer, Buffer>({ name: BLOCKS, encoding: 'binary', keyEncoding: 'binary' }),
    producers: root.openDB<Buffer, Buffer>({ name: PRODUCERS, encoding: 'binary', keyEncoding: 'binary' }),
  };
}

/* Flags of a transaction; the first two are what the store does by itself. */
const ABORTABLE = 1;
const SYNCHRONOUS_COMMIT = 2;
const NO_SYNC_FLUSH = 0x1_0000;

/** Writes in one transaction. @param options.sync whether it returns only when the medium has it. */
export function writeStore({ root }: LmdbStore, write: () => void, options: { sync: boolean }): void {
  root.transactionSync(write, ABORTABLE | SYNCHRONOUS_COMMIT | (options.sync ? 0 : NO_SYNC_FLUSH));
}

/**
 * Resolves when the medium has all that was committed.
 *
 * @throws {LogError}
 */
export function syncStore({ root, path }: LmdbStore): Promise<void> {
  return new Promise((resolve, reject) => {
    (root as unknown as Syncable).sync((error) => {
      if (error === undefined || error === null) resolve();
      else reject(asLogError(error, path));
    });
  });
}

/** The store's typings leave it out. */
interface Syncable {
  sync(done: (error?: unknown) => void): void;
}

/** A stream's record and those of its subscribers by their names, as they are stored. */
export interface StreamTexts {
  readonly id: LogId;
  readonly text: string;
  readonly subscribers: Map<string, string>;
}

/** The records of all streams, in the order of their ids. */
export function* streamTexts({ streams, path }: LmdbStore): Generator<StreamTexts> {
  let stream: StreamTexts | null = null;
  for (const { key, value } of streams.getRange({})) {
    const id = idOfKey(key);
    const subscriber = subscriberOfKey(key);
    if (subscriber === null) {
      if (stream !== null) yield stream;
      stream = { id, text: value, subscribers: new Map() };
    } else {
      if (stream?.id !== id)
        throw new LogCorruption(`${path}, stream ${id}: it has subscribers and no record`);
      stream.subscribers.set(subscriber, value);
    }
  }
  if (stream !== null) yield stream;
}

/** Where in a stream to begin with its blocks. */
export interface BlockRange {
  readonly from: number;
  readonly limit?: number;
}

/** Keys of a stream's blocks that begin with seq `from` or later, in order. */
export function keysFrom(store: LmdbStore, id: LogId, { from, limit }: BlockRange): RangeIterable<Buffer> {
  return store.blocks.getKeys({
    start: blocksFrom(id, from),
    end: blocksEnd(id),
    ...(limit === undefined ? {} : { limit }),
  }) as RangeIterable<Buffer>;
}

/** Key of the last block of a stream that begins with `seq` or earlier: the one that holds it, if any does. */
export function keyAtOrBefore(store: LmdbStore, id: LogId, seq: number): Buffer | null {
  const range = { start: blocksFrom(id, seq + 1), end: blocksFrom(id, 0), reverse: true, limit: 1 };
  for (const key of store.blocks.getKeys(range)) return key as Buffer;
  return null;
}

/** Below this a file system is taken for full: what is written there at once can be a few blocks. */
const FREE_BYTES_MIN = 1024 * 1024;

const OURS = [LogCorruption, LogError, InvariantError, TypeError, RangeError];

const ENOSPC = 28;
const EDQUOT = 122;
const MDB_PAGE_NOTFOUND = -30797;
const MDB_CORRUPTED = -30796;
const MDB_PANIC = -30795;
const MDB_MAP_FULL = -30792;
const MDB_INVALID = -30793;

/** What the store threw, as what a log throws. A mistake of ours stays what it is. */
export function asLogError(cause: unknown, path: string): unknown {
  if (!(cause instanceof Error) || OURS.some((type) => cause instanceof type)) return cause;
  const { code } = cause as { code?: unknown };
  if (code === MDB_PAGE_NOTFOUND || code === MDB_CORRUPTED || code === MDB_INVALID) {
    return new LogCorruption(`${path} is damaged (${cause.message}): restore it from a copy`, { cause });
  }
  const full = code === ENOSPC || code === EDQUOT || code === MDB_MAP_FULL || isFull(path);
  if (full) return new LogError('full', `${path} cannot grow: no space is left`, { cause });
  if (code === MDB_PANIC || cause.message.includes('MDB_PANIC')) {
    const message = `${path}: the page that ends a commit could not be written: start again`;
    return new LogError('broken', message, { cause });
  }
  // After a colon the store says what it did last, which need not be what failed.
  return new LogError('io', `${path}: ${cause.message.split(':')[0]}`, { cause });
}

/** A write that the rest of the space was not enough for is cut short, which the store calls an I/O error. */
function isFull(path: string): boolean {
  try {
    const { bavail, bsize } = statfsSync(dirname(path));
    return bavail * bsize < FREE_BYTES_MIN;
  } catch {
    return false;
  }
}
