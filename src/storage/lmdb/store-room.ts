/**
 * Room in a store's file. LMDB must not find the disk full while it commits: what it then writes to say so can run over
 * the end of its own buffer, and the process dies. So before a commit the file has what the commit can take at most: it
 * is made longer here, by zeros, which fails in peace; or enough free pages lie within it. Some is always kept back, so
 * that on a full disk something can still be deleted.
 *
 * File systems that never write in place (btrfs, ZFS) can find no room for what is there already; on those a full disk
 * can still end the process. It loses nothing that was committed.
 */

import { closeSync, fstatSync, openSync, writeSync } from 'node:fs';
import { LogError } from '../event-log.js';
import { pagesOf } from './lmdb-format.js';
import type { LmdbStore } from './lmdb-store.js';
import { freeRanges } from './store-check.js';

/** What a commit writes. */
export interface Need {
  /** Sizes of the blocks, in bytes. */
  readonly blocks: readonly number[];
  /** Records and blocks that are put. */
  readonly puts: number;
  readonly deletes: number;
}

/** A put takes a copy of a leaf and, now and then, of what leads there, or another leaf. */
const PAGES_PER_PUT = 4;
/** Deleted blocks lie side by side in their leaves. */
const PAGES_PER_DELETE = 1;
/** Above all for the list of free pages, which is written anew. */
const PAGES_PER_COMMIT = 256;
/** Pages to spare after each look, beyond what a commit takes at most, where the disk has room. */
const PAGES_AHEAD = 2048;
/** Kept back for commits that only delete. */
const RESERVE_PAGES = 512;

/** How much longer the file is made at a time, as a part of what it is, and within bounds. */
const GROWTH = 1 / 16;
const GROWTH_BYTES_MIN = 16 * 1024 * 1024;
const GROWTH_BYTES_MAX = 64 * 1024 * 1024;
const ZEROS = Buffer.alloc(256 * 1024);

/** Single user: the writer of the store. */
export class StoreRoom {
  readonly #store: LmdbStore;
  readonly #fd: number;
  #pageBytes = 0;
  /** Pages of the file beyond all that are in use, at least. Negative where the last of those were never written. */
  #pagesLeft = 0;

  constructor(store: LmdbStore) {
    this.#store = store;
    this.#fd = openSync(store.path, 'r+');
  }

  close(): void {
    closeSync(this.#fd);
  }

  /**
   * Makes sure that there is room for a commit, which follows at once.
   *
   * @param mayUseReserve for commits that only delete.
   * @throws {LogError} `full`
   */
  require(need: Need, { mayUseReserve }: { mayUseReserve: boolean }): void {
    if (this.#pageBytes === 0) this.#look();
    const pages = this.#pagesFor(need);
    const wanted = mayUseReserve ? pages : pages + RESERVE_PAGES;
    if (this.#pagesLeft < wanted) {
      this.#look();
      // With some to spare, for a look costs more than many a commit.
      if (this.#pagesLeft < wanted + PAGES_AHEAD) this.#grow(wanted);
    }
    if (this.#pagesLeft < wanted && !this.#fitsWithin(need, wanted)) {
      throw new LogError('full', `${this.#store.path} cannot grow: no space is left`);
    }
    this.#pagesLeft -= pages;
  }

  #pagesFor({ blocks, puts, deletes }: Need): number {
    let pages = PAGES_PER_COMMIT + PAGES_PER_PUT * puts + PAGES_PER_DELETE * deletes;
    for (const bytes of blocks) pages += pagesOf(bytes, this.#pageBytes);
    return pages;
  }

  /** How it really is; from one commit to the next only the least is known. */
  #look(): void {
    const { root } = this.#store;
    const stats = root.getStats() as { lastPageNumber: number; pageSize: number };
    root.resetReadTxn();
    this.#pageBytes = stats.pageSize;
    const filePages = Math.floor(fstatSync(this.#fd).size / stats.pageSize);
    this.#pagesLeft = filePages - stats.lastPageNumber - 1;
  }

  /** As far as the disk allows. */
  #grow(wanted: number): void {
    const { size } = fstatSync(this.#fd);
    const step = Math.min(GROWTH_BYTES_MAX, Math.max(GROWTH_BYTES_MIN, Math.floor(size * GROWTH)));
    // One more than is missing, for the last one may be cut short.
    const least = (wanted - this.#pagesLeft + 1) * this.#pageBytes;
    const end = Math.ceil((size + Math.max(step, least)) / this.#pageBytes) * this.#pageBytes;
    try {
      for (let at = size; at < end; )
        at += writeSync(this.#fd, ZEROS, 0, Math.min(ZEROS.length, end - at), at);
    } catch (error) {
      const { code } = error as NodeJS.ErrnoException;
      if (code !== 'ENOSPC' && code !== 'EDQUOT' && code !== 'EFBIG') throw error;
    }
    this.#look();
  }

  /** Whether free pages within the file are enough, each block in one piece. */
  #fitsWithin(need: Need, wanted: number): boolean {
    const longest = need.blocks.reduce((most, bytes) => Math.max(most, pagesOf(bytes, this.#pageBytes)), 1);
    let pages = 0;
    for (const range of freeRanges(this.#store.path)) pages += range.pages - (range.pages % longest);
    return pages >= wanted;
  }
}
