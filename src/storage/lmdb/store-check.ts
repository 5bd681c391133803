/**
 * Looks through a store's file before LMDB does. LMDB trusts its pages: from a damaged one it reads wherever it is told
 * to, beyond the file too, and the process dies of it; or it finds less than there is and says nothing. Here each page
 * of the trees is read, and what does not fit together is refused. The blocks themselves have checksums.
 *
 * What it cannot notice: a page that is whole, but older than it should be, because the medium lost a write and said
 * nothing; and what becomes of a page while the store is open, for LMDB reads it again each time.
 */

import { statSync } from 'node:fs';
import { type PageRange, readFreePages } from './lmdb-format.js';
import { BLOCKS, PRODUCERS, STREAMS } from './lmdb-store.js';
import { PageFile } from './page-file.js';
import {
  BLOCK_KEY_BYTES,
  type BlockStart,
  idOfKey,
  PRODUCER_KEY_BYTES,
  STREAM_KEY_BYTES,
  startOfKey,
} from './store-keys.js';
import { readStoreTrees, type StoreTrees } from './store-trees.js';
import { type Entry, walkTree } from './tree-walk.js';

const FREE_KEY_BYTES = 8;

/**
 * Checks a whole file that nobody has open. Memory: a bit for each page of the file. Time: a read for each page of the
 * trees, which are a thousandth of a file of large blocks, and one for each stream.
 *
 * @throws {LogCorruption} naming what is wrong first.
 */
export function checkStore(path: string): void {
  const bytes = statSync(path, { throwIfNoEntry: false })?.size ?? 0;
  // What is empty or not there is made anew.
  if (bytes === 0) return;
  const file = new PageFile(path);
  try {
    const trees = readStoreTrees(file, { tracksUse: true });
    refuseNames(file, trees);
    const contents = new Contents(file);
    walkNamed(file, trees, STREAMS, (entry) => contents.addStream(entry));
    walkNamed(file, trees, BLOCKS, (entry) => contents.addBlock(entry));
    contents.finish();
    walkNamed(file, trees, PRODUCERS, (entry) => contents.addProducer(entry));
    walkFree(file, trees, (range) => file.free(range));
  } finally {
    file.close();
  }
}

/**
 * Checks blocks that are about to be deleted, in a file that is in use, by the thread that writes it. The file is what
 * the last commit left.
 *
 * @throws {LogCorruption} when LMDB would free other pages than theirs.
 */
export function checkBlocks(path: string, firstKey: Buffer, lastKey: Buffer): void {
  const file = new PageFile(path);
  try {
    const trees = readStoreTrees(file, { tracksUse: false });
    const visit = ({ large }: Entry) => {
      if (large !== null) file.checkLarge(large);
    };
    walkNamed(file, trees, BLOCKS, visit, { from: firstKey, to: lastKey });
  } finally {
    file.close();
  }
}

const NAMES = [STREAMS, BLOCKS, PRODUCERS];

/** A tree by a wrong name would be made anew by the right one, empty. All are made at first, one after the other. */
function refuseNames(file: PageFile, { named }: StoreTrees): void {
  for (const name of named.keys()) {
    if (!NAMES.includes(name)) throw file.corruption(`there should be no ${JSON.stringify(name)} in it`);
  }
  const entries = (name: string) => named.get(name)?.entries ?? 0;
  const isNew = entries(STREAMS) === 0 && entries(BLOCKS) === 0;
  if (!isNew && named.size < NAMES.length) throw file.corruption('a tree is missing');
}

/**
 * Where pages lie free that the next commit can use, in a file that is in use, by the thread that writes it. What the
 * last commit freed is used by the one after the next.
 */
export function freeRanges(path: string): PageRange[] {
  const file = new PageFile(path);
  try {
    const trees = readStoreTrees(file, { tracksUse: false });
    const ranges: PageRange[] = [];
    walkFree(file, trees, (range, commit) => {
      if (commit < file.commit && range.first + range.pages <= file.pages) ranges.push(range);
    });
    return joined(ranges);
  } finally {
    file.close();
  }
}

/** Ranges that touch are one. */
function joined(ranges: PageRange[]): PageRange[] {
  const result: { first: number; pages: number }[] = [];
  for (const range of ranges.sort((a, b) => a.first - b.first)) {
    const last = result.at(-1);
    if (last !== undefined && last.first + last.pages === range.first) last.pages += range.pages;
    else result.push({ ...range });
  }
  return result;
}

function walkNamed(
  file: PageFile,
  { named }: StoreTrees,
  name: string,
  visit: (entry: Entry) => void,
  within?: { from: Buffer; to: Buffer },
): void {
  const tree = named.get(name);
  if (tree === undefined) return;
  walkTree({ file, name, tree, compare: Buffer.compare, visit, ...(within && { within }) });
}

function walkFree(
  file: PageFile,
  { free: tree }: StoreTrees,
  visitRange: (range: PageRange, commit: number) => void,
): void {
  const visit = ({ key, large, data }: Entry) => {
    if (large !== null) file.checkLarge(large);
    const ranges = key.length === FREE_KEY_BYTES ? readFreePages(data()) : null;
    if (ranges === null) throw file.corruption('a record of free pages is none');
    const commit = Number(key.readBigUInt64LE());
    for (const range of ranges) visitRange(range, commit);
  };
  walkTree({ file, name: 'free pages', tree, compare: compareCommits, visit });
}

function compareCommits(a: Buffer, b: Buffer): number {
  return Buffer.compare(Buffer.from(a).reverse(), Buffer.from(b).reverse());
}

/** What is in the trees: each block has a stream, those of a stream are in order, and its last one can be merged into. */
class Contents {
  readonly #file: PageFile;
  readonly #ids = new Set<number>();
  #id = 0;
  #block: BlockStart | null = null;
  #large: PageRange | null = null;

  constructor(file: PageFile) {
    this.#file = file;
  }

  addStream({ key }: Entry): void {
    if (key.length < STREAM_KEY_BYTES) throw this.#file.corruption('the key of a stream is none');
    const id = idOfKey(key);
    if (key.length > STREAM_KEY_BYTES && !this.#ids.has(id)) {
      throw this.#file.corruption(`the subscribers of stream ${id} have no stream`);
    }
    this.#ids.add(id);
  }

  addBlock({ key, large }: Entry): void {
    if (key.length !== BLOCK_KEY_BYTES) throw this.#file.corruption('the key of a block is none');
    const id = idOfKey(key);
    const block = startOfKey(key);
    if (!this.#ids.has(id)) throw this.#file.corruption(`the blocks of stream ${id} have no stream`);
    if (id !== this.#id) {
      this.finish();
    } else if (this.#block !== null && block.position <= this.#block.position) {
      throw this.#file.corruption(`the blocks of stream ${id} are not in order`);
    }
    this.#id = id;
    this.#block = block;
    this.#large = large;
  }

  addProducer({ key }: Entry): void {
    if (key.length !== PRODUCER_KEY_BYTES) throw this.#file.corruption('the key of a producer is none');
    const id = idOfKey(key);
    if (!this.#ids.has(id)) throw this.#file.corruption(`the producers of stream ${id} have no stream`);
  }

  /** The last block of a stream was added. */
  finish(): void {
    if (this.#large !== null) this.#file.checkLarge(this.#large);
  }
}
