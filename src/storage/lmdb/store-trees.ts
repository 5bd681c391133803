import {
  DATA_TREE,
  DATA_VERSION,
  MAGIC,
  META,
  META_BYTES_END,
  type Meta,
  readMeta,
  readTree,
  type Tree,
} from './lmdb-format.js';
import { MAP_BYTES } from './lmdb-store.js';
import type { PageFile } from './page-file.js';
import { type Entry, walkTree } from './tree-walk.js';

/** The trees of a store, as its newest commit left them. */
export interface StoreTrees {
  readonly free: Tree;
  readonly named: Map<string, Tree>;
}

/** What LMDB allows. */
const PAGE_BYTES_MIN = 512;
const PAGE_BYTES_MAX = 65_536;

/** What LMDB writes for the flags of trees. Of free pages: no subdirectory, keys are integers. */
const FREE_TREE_FLAGS = 0x4008;
const TREE_FLAGS = 0;

/** What the library puts behind the name of a tree. */
const NAME_END = '\0';

/** @param tracksUse whether pages that are used twice are noticed, in the trees that are walked from now on. */
export function readStoreTrees(file: PageFile, { tracksUse }: { tracksUse: boolean }): StoreTrees {
  const { free, main, commit, lastPage } = newestMeta(file);
  file.begin(commit, lastPage + 1, { tracksUse });
  const named = new Map<string, Tree>();
  const visit = ({ key, kind, data }: Entry) => {
    const name = key.toString('latin1', 0, key.length - NAME_END.length);
    const tree = kind === DATA_TREE ? readTree(data(), 0) : null;
    if (!key.toString('latin1').endsWith(NAME_END) || tree?.flags !== TREE_FLAGS) {
      throw file.corruption(`${JSON.stringify(name)} is not a tree`);
    }
    named.set(name, tree);
  };
  walkTree({ file, name: 'names', tree: main, compare: Buffer.compare, visit });
  return { free, named };
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
    meta.main.flags === TREE_FLAGS;
  if (!right) throw file.corruption(`page ${number} does not describe a store`);
  return meta;
}
