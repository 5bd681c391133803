/**
 * The file format of LMDB, as far as a check needs it: data version 2, 64-bit, little-endian.
 *
 * A file is pages. Pages 0 and 1 are metas: commit n writes meta n mod 2, so that the other still tells of n - 1.
 *
 * PAGE                                   META, on page 0 and 1
 *   offset size field                      offset size field
 *        0    8 page number                    24    4 magic
 *        8    8 of the commit that wrote it    28    4 data version
 *       18    2 kind                           40    8 size of the map
 *       20    2 lower: 2 * nodes               48   48 TREE of free pages
 *       22    2 upper: of the free space       96   48 TREE that names the other trees
 *       20    4 pages, on an overflow page    144    8 last page
 *       24    n nodes, by their offsets       152    8 number of the commit
 *
 * NODE, at 24 + its offset               TREE
 *   offset size field                      offset size field
 *        0    4 size of the data                0    4 page size, in the first only
 *        4    2 kind of the data                4    2 flags
 *        6    2 size of the key                 6    2 depth
 *        8    n key, then data                 32    8 entries
 *   On a branch, bytes 0 to 5 are              40    8 root page, all ones when empty
 *   the page number of a child.
 *
 * LARGE DATA, in place of the data       FREE PAGES, data in the tree of free pages
 *   offset size field                      offset size field
 *        0    8 page where it begins            0    8 count of what follows
 *       16    8 pages                           8    8 page, or minus the length of the range
 *                                                      that begins with the page that comes next; or 0
 */

export const MAGIC = 0xbeef_c0de;
export const DATA_VERSION = 2;
export const METAS = 2;
export const PAGE_HEADER_BYTES = 24;
/** Of the page with a meta, what it takes. */
export const META_BYTES_END = 160;
export const NODE_HEADER_BYTES = 8;
export const TREE_BYTES = 48;
export const LARGE_DATA_BYTES = 24;

export const BRANCH = 0x01;
export const LEAF = 0x02;
export const OVERFLOW = 0x04;
export const META = 0x08;

export const DATA_INLINE = 0;
export const DATA_LARGE = 1;
export const DATA_TREE = 2;

const FREE_TREE_OFFSET = 48;
const MAIN_TREE_OFFSET = 96;

/** Pages that follow each other. */
export interface PageRange {
  readonly first: number;
  readonly pages: number;
}

export interface Tree {
  readonly flags: number;
  readonly depth: number;
  readonly entries: number;
  /** Null when there are no entries. */
  readonly root: number | null;
}

export interface Meta {
  readonly kind: number;
  readonly magic: number;
  readonly version: number;
  readonly pageBytes: number;
  readonly free: Tree;
  readonly main: Tree;
  readonly lastPage: number;
  readonly commit: number;
}

/** A number beyond 2^53 comes out rounded, and so beyond whatever it is compared with. */
function uint64(bytes: Buffer, offset: number): number {
  return bytes.readUInt32LE(offset + 4) * 2 ** 32 + bytes.readUInt32LE(offset);
}

export function readMeta(page: Buffer): Meta {
  return {
    kind: page.readUInt16LE(18),
    magic: page.readUInt32LE(24),
    version: page.readUInt32LE(28),
    pageBytes: page.readUInt32LE(FREE_TREE_OFFSET),
    free: readTree(page, FREE_TREE_OFFSET),
    main: readTree(page, MAIN_TREE_OFFSET),
    lastPage: uint64(page, 144),
    commit: uint64(page, 152),
  };
}

const EMPTY_TREE_ROOT = 2 ** 64;

export function readTree(bytes: Buffer, offset: number): Tree {
  const root = uint64(bytes, offset + 40);
  return {
    flags: bytes.readUInt16LE(offset + 4),
    depth: bytes.readUInt16LE(offset + 6),
    entries: uint64(bytes, offset + 32),
    root: root === EMPTY_TREE_ROOT ? null : root,
  };
}

export interface PageHeader {
  readonly number: number;
  readonly commit: number;
  readonly kind: number;
  readonly lower: number;
  readonly upper: number;
  /** Of an overflow page. */
  readonly pages: number;
}

export function readPageHeader(page: Buffer): PageHeader {
  return {
    number: uint64(page, 0),
    commit: uint64(page, 8),
    kind: page.readUInt16LE(18),
    lower: page.readUInt16LE(20),
    upper: page.readUInt16LE(22),
    pages: page.readUInt32LE(20),
  };
}

/** Offset in the page of node `index`; it may be anywhere. */
export function nodeAt(page: Buffer, index: number): number {
  return PAGE_HEADER_BYTES + page.readUInt16LE(PAGE_HEADER_BYTES + 2 * index);
}

export interface Node {
  readonly keyBytes: number;
  readonly dataBytes: number;
  readonly dataKind: number;
  /** On a branch. */
  readonly child: number;
}

export function readNode(page: Buffer, at: number): Node {
  return {
    dataBytes: page.readUInt32LE(at),
    dataKind: page.readUInt16LE(at + 4),
    keyBytes: page.readUInt16LE(at + 6),
    child: page.readUInt16LE(at + 4) * 2 ** 32 + page.readUInt32LE(at),
  };
}

export function readLargeData(page: Buffer, at: number): PageRange {
  return { first: uint64(page, at), pages: uint64(page, at + 16) };
}

/** Pages that data of a size takes when it is large. */
export function pagesOf(dataBytes: number, pageBytes: number): number {
  return Math.ceil((PAGE_HEADER_BYTES + dataBytes) / pageBytes);
}

/** The ranges in the data of a record of free pages; null when it cannot be read. */
export function readFreePages(data: Buffer): PageRange[] | null {
  if (data.length < 8) return null;
  const count = uint64(data, 0);
  if (8 * (count + 1) > data.length) return null;
  const ranges: PageRange[] = [];
  for (let i = 1; i <= count; i++) {
    const entry = int64(data, 8 * i);
    if (entry === 0) continue;
    if (entry > 0) {
      ranges.push({ first: entry, pages: 1 });
    } else {
      i++;
      if (i > count) return null;
      ranges.push({ first: int64(data, 8 * i), pages: -entry });
    }
  }
  return ranges;
}

function int64(bytes: Buffer, offset: number): number {
  return bytes.readInt32LE(offset + 4) * 2 ** 32 + bytes.readUInt32LE(offset);
}
