import {
  BRANCH,
  DATA_INLINE,
  DATA_LARGE,
  DATA_TREE,
  LARGE_DATA_BYTES,
  LEAF,
  NODE_HEADER_BYTES,
  type Node,
  nodeAt,
  PAGE_HEADER_BYTES,
  type PageHeader,
  type PageRange,
  pagesOf,
  readLargeData,
  readNode,
  readPageHeader,
  TREE_BYTES,
  type Tree,
} from './lmdb-format.js';
import type { PageFile } from './page-file.js';

/** An entry of a tree. */
export interface Entry {
  readonly key: Buffer;
  readonly kind: number;
  /** Where the data lies when it is large. */
  readonly large: PageRange | null;
  /** Reads the data, which may be large. */
  data(): Buffer;
}

export interface TreeWalk {
  readonly file: PageFile;
  /** What the tree is called in a message. */
  readonly name: string;
  readonly tree: Tree;
  readonly compare: (a: Buffer, b: Buffer) => number;
  readonly visit: (entry: Entry) => void;
  /** Only entries with keys of this range are visited, its ends included, and only the pages that lead there. */
  readonly within?: { readonly from: Buffer; readonly to: Buffer };
}

/** What LMDB allows. */
const DEPTH_MAX = 32;

/**
 * Visits all entries of a tree in order, and takes its pages.
 *
 * @throws {LogCorruption} when LMDB would stumble over a page, or not find an entry that is there.
 */
export function walkTree(walk: TreeWalk): void {
  const { tree, file, name, within } = walk;
  if (tree.depth > DEPTH_MAX) throw file.corruption(`the tree of ${name} is too deep`);
  const entries = tree.root === null ? 0 : new Walker(walk).descend(tree.root, 1, null, null);
  if (within === undefined && entries !== tree.entries) {
    throw file.corruption(`the tree of ${name} has ${entries} entries of ${tree.entries}`);
  }
}

class Walker {
  readonly #walk: TreeWalk;

  constructor(walk: TreeWalk) {
    this.#walk = walk;
  }

  /** Walks what is under a page: keys from `low` on and below `high`, where they are given. */
  descend(number: number, depth: number, low: Buffer | null, high: Buffer | null): number {
    const { file, tree } = this.#walk;
    file.use({ first: number, pages: 1 });
    const page = file.read(number);
    const header = readPageHeader(page);
    this.#require(header.number === number, number);
    this.#require(header.kind === (depth === tree.depth ? LEAF : BRANCH), number);
    this.#require(header.commit <= file.commit, number);
    const count = this.#countNodes(page, header, number);
    return header.kind === LEAF
      ? this.#visitLeaf(page, count, number, low, high)
      : this.#visitBranch(page, count, number, depth, low, high);
  }

  /** The nodes of a page lie back to back from its upper border to its end. */
  #countNodes(page: Buffer, { lower, upper }: PageHeader, number: number): number {
    const end = page.length - PAGE_HEADER_BYTES;
    this.#require(lower >= 2 && lower % 2 === 0 && lower <= upper && upper <= end, number);
    const count = lower / 2;
    let bytes = 0;
    for (let index = 0; index < count; index++) {
      const at = nodeAt(page, index);
      this.#require(at >= PAGE_HEADER_BYTES + upper && at + NODE_HEADER_BYTES <= page.length, number);
      const size = this.#nodeBytes(page, readNode(page, at));
      this.#require(at + size <= page.length, number);
      bytes += size + (size % 2);
    }
    this.#require(bytes === end - upper, number);
    return count;
  }

  #nodeBytes(page: Buffer, { keyBytes, dataBytes, dataKind }: Node): number {
    if (readPageHeader(page).kind === BRANCH) return NODE_HEADER_BYTES + keyBytes;
    return NODE_HEADER_BYTES + keyBytes + (dataKind === DATA_LARGE ? LARGE_DATA_BYTES : dataBytes);
  }

  #visitBranch(
    page: Buffer,
    count: number,
    number: number,
    depth: number,
    low: Buffer | null,
    high: Buffer | null,
  ): number {
    let entries = 0;
    for (let index = 0; index < count; index++) {
      const at = nodeAt(page, index);
      // The first key of a branch stands for whatever is lowest.
      const from = index === 0 ? low : keyOf(page, at);
      const to = index === count - 1 ? high : keyOf(page, nodeAt(page, index + 1));
      this.#require(index === 0 || this.#inOrder(low, from), number);
      this.#require(from === null || to === null || this.#walk.compare(from, to) < 0, number);
      if (!this.#reaches(from, to)) continue;
      entries += this.descend(readNode(page, at).child, depth + 1, from, to);
    }
    return entries;
  }

  #visitLeaf(page: Buffer, count: number, number: number, low: Buffer | null, high: Buffer | null): number {
    let before: Buffer | null = null;
    for (let index = 0; index < count; index++) {
      const at = nodeAt(page, index);
      const key = keyOf(page, at);
      const ordered = before === null ? this.#inOrder(low, key) : this.#walk.compare(before, key) < 0;
      this.#require(ordered && (high === null || this.#walk.compare(key, high) < 0), number);
      if (this.#isWithin(key)) this.#walk.visit(this.#entry(page, at, key, number));
      before = key;
    }
    return count;
  }

  #entry(page: Buffer, at: number, key: Buffer, number: number): Entry {
    const { dataBytes, dataKind: kind } = readNode(page, at);
    const dataAt = at + NODE_HEADER_BYTES + key.length;
    if (kind !== DATA_LARGE) {
      this.#require(kind === DATA_INLINE || (kind === DATA_TREE && dataBytes === TREE_BYTES), number);
      return { key, kind, large: null, data: () => page.subarray(dataAt, dataAt + dataBytes) };
    }
    const { file } = this.#walk;
    const large = readLargeData(page, dataAt);
    this.#require(large.pages >= pagesOf(dataBytes, page.length), number);
    file.use(large);
    const data = () => file.read(large.first, PAGE_HEADER_BYTES + dataBytes).subarray(PAGE_HEADER_BYTES);
    return { key, kind, large, data };
  }

  #isWithin(key: Buffer): boolean {
    const { within, compare } = this.#walk;
    return within === undefined || (compare(within.from, key) <= 0 && compare(key, within.to) <= 0);
  }

  /** Whether keys from `low` on and below `high` can be within the range. */
  #reaches(low: Buffer | null, high: Buffer | null): boolean {
    const { within, compare } = this.#walk;
    if (within === undefined) return true;
    return (
      (low === null || compare(low, within.to) <= 0) && (high === null || compare(within.from, high) < 0)
    );
  }

  #inOrder(low: Buffer | null, key: Buffer | null): boolean {
    return low === null || key === null || this.#walk.compare(low, key) <= 0;
  }

  #require(holds: boolean, number: number): void {
    if (!holds)
      throw this.#walk.file.corruption(`page ${number} is not one of the tree of ${this.#walk.name}`);
  }
}

function keyOf(page: Buffer, at: number): Buffer {
  const { keyBytes } = readNode(page, at);
  return page.subarray(at + NODE_HEADER_BYTES, at + NODE_HEADER_BYTES + keyBytes);
}
