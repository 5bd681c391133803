/**
 * Looks through a store's file before LMDB opens it. LMDB trusts its pages: from a damaged one it reads wherever it is
 * told to, beyond the file too, and the process dies of it; or it finds less than there is and says nothing. Here each
 * page of the trees is read, and what does not fit together is refused. The blocks themselves have checksums.
 *
 * Memory: a bit for each page of the file. Time: a read for each page of the trees, which are a thousandth of a file
 * of large blocks.
 */

import { statSync } from 'node:fs';
import {
  DATA_TREE,
  DATA_VERSION,
  MAGIC,
  META,
  META_BYTES_END,
  type Meta,
  type PageRange,
  readFreePages,
  readMeta,
  readTree,
  type Tree,
} from './lmdb-format.js';
import { BLOCKS, MAP_BYTES, STREAMS } from './lmdb-store.js';
import { PageFile } from './page-file.js';
import { BLOCK_KEY_BYTES, type BlockStart, idOfKey, STREAM_KEY_BYTES, startOfKey } from './store-keys.js';
import { type Entry, walkTree } from './tree-walk.js';

/** What LMDB allows. */
const PAGE_BYTES_MIN = 512;
const PAGE_BYTES_MAX = 65_536;
const FREE_KEY_BYTES = 8;

/** What LMDB writes for the flags of the two trees of a meta: no subdirectory, keys are integers; none. */
const FREE_TREE_FLAGS = 0x4008;
const MAIN_TREE_FLAGS = 0;

/**
 * @param path of a file that nobody has open.
 * @throws {LogCorruption} naming what is wrong first.
 */
export function checkStore(path: string): void {
  const bytes = statSync(path, { throwIfNoEntry: false })?.size ?? 0;
  // What is empty or not there is made anew.
  if (bytes === 0) return;
  const file = new PageFile(path, PAGE_BYTES_MIN);
  try {
    const { free, main, commit } = newestMeta(file);
    const contents = new Contents(file);
    const visits = new Map([
      [STREAMS, ({ key }: Entry) => contents.addStream(key)],
      [BLOCKS, ({ key }: Entry) => contents.addBlock(key)],
    ]);
    const trees = walkNames(file, main, commit);
    for (const [name, visit] of visits) {
      const tree = trees.get(name);
      if (tree !== undefined) walkNamed(file, name, tree, commit, visit);
      trees.delete(name);
    }
    for (const [name, tree] of trees) walkNamed(file, name, tree, commit, () => undefined);
    walkFree(file, free, commit);
  } finally {
    file.close();
  }
}

/** The newer meta. Both have to be right: one that tells of an older commit than it did would bring that back. */
function newestMeta(file: PageFile): Meta {
  const even = metaAt(file, 0);
  file.pageBytes = even.pageBytes;
  const odd = metaAt(file, 1);
  const untouched = even.commit === 0 && odd.commit === 0;
  const consecutive =
    even.commit % 2 === 0 && odd.commit % 2 === 1 && Math.abs(even.commit - odd.commit) === 1;
  if (!untouched && !consecutive) {
    throw file.corruption(`its last two commits are ${even.commit} and ${odd.commit}`);
  }
  const newest = even.commit > odd.commit ? even : odd;
  if (newest.pageBytes !== even.pageBytes || newest.lastPage * newest.pageBytes > MAP_BYTES) {
    throw file.corruption('its size is impossible');
  }
  file.setEnd(newest.lastPage + 1);
  return newest;
}

function metaAt(file: PageFile, number: number): Meta {
  const meta = readMeta(file.read(number, META_BYTES_END));
  const { pageBytes } = meta;
  const right =
    meta.kind === META &&
    meta.magic === MAGIC &&
    meta.version === DATA_VERSION &&
    pageBytes >= PAGE_BYTES_MIN &&
    pageBytes <= PAGE_BYTES_MAX &&
    Number.isInteger(Math.log2(pageBytes)) &&
    meta.free.flags === FREE_TREE_FLAGS &&
    meta.main.flags === MAIN_TREE_FLAGS;
  if (!right) throw file.corruption(`page ${number} does not describe a store`);
  return meta;
}

/** The trees that have names. */
function walkNames(file: PageFile, tree: Tree, commit: number): Map<string, Tree> {
  const trees = new Map<string, Tree>();
  const visit = ({ key, kind, data }: Entry) => {
    const name = key.toString('latin1');
    if (kind !== DATA_TREE) throw file.corruption(`${name} is not a tree`);
    trees.set(name, readTree(data(), 0));
  };
  walkTree({ file, name: 'names', tree, commit, compare: Buffer.compare, visit });
  return trees;
}

function walkNamed(file: PageFile, name: string, tree: Tree, commit: number, visit: (entry: Entry) => void) {
  if (tree.flags !== MAIN_TREE_FLAGS) throw file.corruption(`the tree of ${name} has other flags`);
  walkTree({ file, name, tree, commit, compare: Buffer.compare, visit });
}

function walkFree(file: PageFile, tree: Tree, commit: number): void {
  const visit = ({ key, data }: Entry) => {
    const ranges = key.length === FREE_KEY_BYTES ? readFreePages(data()) : null;
    if (ranges === null) throw file.corruption('a record of free pages is none');
    free.push(...ranges);
  };
  const free: PageRange[] = [];
  walkTree({ file, name: 'free pages', tree, commit, compare: compareCommits, visit });
  // Only now is it known which pages this tree itself uses.
  for (const range of free) file.refuseUsed(range);
}

function compareCommits(a: Buffer, b: Buffer): number {
  const [x, y] = [a, b].map((key) => (key.length === FREE_KEY_BYTES ? key.readBigUInt64LE() : 0n)) as [
    bigint,
    bigint,
  ];
  return x < y ? -1 : Number(x > y);
}

/** Streams and blocks: each block has a stream, and those of a stream are in order. */
class Contents {
  readonly #file: PageFile;
  readonly #ids = new Set<number>();
  #id = 0;
  #block: BlockStart | null = null;

  constructor(file: PageFile) {
    this.#file = file;
  }

  addStream(key: Buffer): void {
    if (key.length !== STREAM_KEY_BYTES) throw this.#file.corruption('the key of a stream is none');
    this.#ids.add(idOfKey(key));
  }

  addBlock(key: Buffer): void {
    if (key.length !== BLOCK_KEY_BYTES) throw this.#file.corruption('the key of a block is none');
    const id = idOfKey(key);
    const block = startOfKey(key);
    if (!this.#ids.has(id)) throw this.#file.corruption(`the blocks of stream ${id} have no stream`);
    if (id === this.#id && this.#block !== null && block.position <= this.#block.position) {
      throw this.#file.corruption(`the blocks of stream ${id} are not in order`);
    }
    this.#id = id;
    this.#block = block;
  }
}
