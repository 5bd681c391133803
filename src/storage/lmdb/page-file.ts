import { closeSync, fstatSync, openSync, readSync } from 'node:fs';
import { LogCorruption } from '../event-log.js';
import { METAS, OVERFLOW, PAGE_HEADER_BYTES, type PageRange, readPageHeader } from './lmdb-format.js';

/** The pages of a store's file, read one by one, and which of them are taken. */
export class PageFile {
  readonly path: string;
  pageBytes = 512;
  readonly #fd: number;
  readonly #fileBytes: number;
  /** Number of the newest commit: no page is younger. */
  commit = 0;
  /** There are no pages from this one on. */
  #pagesEnd = METAS;
  /** A bit for each page that is used or free; null when that is not kept. */
  #taken: Uint8Array | null = null;

  constructor(path: string) {
    this.path = path;
    this.#fd = openSync(path, 'r');
    this.#fileBytes = fstatSync(this.#fd).size;
  }

  /** Pages that the file has, whatever for. */
  get pages(): number {
    return Math.floor(this.#fileBytes / this.pageBytes);
  }

  close(): void {
    closeSync(this.#fd);
  }

  /** @param tracksUse whether a page that is taken twice is noticed; takes a bit of memory for each. */
  begin(commit: number, pagesEnd: number, { tracksUse }: { tracksUse: boolean }): void {
    this.commit = commit;
    this.#pagesEnd = pagesEnd;
    this.#taken = tracksUse ? new Uint8Array(Math.ceil(pagesEnd / 8)) : null;
  }

  /** A page, or the beginning of several that follow each other. */
  read(page: number, bytes = this.pageBytes): Buffer {
    const buffer = Buffer.allocUnsafe(bytes);
    const read = readSync(this.#fd, buffer, 0, bytes, page * this.pageBytes);
    if (read < bytes) throw this.corruption(`it is truncated: page ${page} is not there`);
    return buffer;
  }

  /** Takes pages for a tree. Each belongs to one, once, and lies in the file. */
  use({ first, pages }: PageRange): void {
    this.#refuseOutside({ first, pages });
    if ((first + pages) * this.pageBytes > this.#fileBytes) {
      throw this.corruption(
        `it is truncated: it has ${this.#fileBytes} bytes, and page ${first} is not there`,
      );
    }
    this.#take({ first, pages });
  }

  /**
   * Takes pages that are free: they are nobody's, and given out once. They may lie beyond the end of the file, for they
   * were never written.
   */
  free(range: PageRange): void {
    this.#refuseOutside(range);
    this.#take(range);
  }

  /** When large data is deleted, LMDB believes its first page how many pages to free, and which commit has written them. */
  checkLarge({ first, pages }: PageRange): void {
    const header = readPageHeader(this.read(first, PAGE_HEADER_BYTES));
    const isRight = header.number === first && header.kind === OVERFLOW && header.pages === pages;
    if (isRight && header.commit <= this.commit) return;
    throw this.corruption(`page ${first} does not begin the data that it should`);
  }

  corruption(what: string): LogCorruption {
    return new LogCorruption(`${this.path} is damaged, ${what}: restore it from a copy`);
  }

  #refuseOutside({ first, pages }: PageRange): void {
    if (first >= METAS && pages > 0 && first + pages <= this.#pagesEnd) return;
    throw this.corruption(`it refers to page ${first}, which is none`);
  }

  #take({ first, pages }: PageRange): void {
    const taken = this.#taken;
    if (taken === null) return;
    for (let page = first; page < first + pages; page++) {
      const bits = taken[page >> 3] ?? 0;
      const bit = 1 << (page & 7);
      if ((bits & bit) !== 0) throw this.corruption(`page ${page} is used or free twice`);
      taken[page >> 3] = bits | bit;
    }
  }
}
