import { closeSync, fstatSync, openSync, readSync } from 'node:fs';
import { LogCorruption } from './event-log.js';
import { METAS, type PageRange } from './lmdb-format.js';

/** The pages of a store's file, read one by one, and which of them are used for what. */
export class PageFile {
  readonly path: string;
  pageBytes: number;
  readonly #fd: number;
  readonly #fileBytes: number;
  /** There are no pages from this one on. */
  #pagesEnd = 0;
  /** A bit for each page that belongs to a tree. */
  #used = new Uint8Array(0);

  constructor(path: string, pageBytes: number) {
    this.path = path;
    this.pageBytes = pageBytes;
    this.#fd = openSync(path, 'r');
    this.#fileBytes = fstatSync(this.#fd).size;
  }

  close(): void {
    closeSync(this.#fd);
  }

  setEnd(pagesEnd: number): void {
    this.#pagesEnd = pagesEnd;
    this.#used = new Uint8Array(Math.ceil(pagesEnd / 8));
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
    for (let page = first; page < first + pages; page++) {
      if (this.#isUsed(page)) throw this.corruption(`page ${page} is used twice`);
      this.#used[page >> 3] = (this.#used[page >> 3] ?? 0) | (1 << (page & 7));
    }
  }

  /** Free pages are nobody's. They may lie beyond the end of the file, for they were never written. */
  refuseUsed({ first, pages }: PageRange): void {
    this.#refuseOutside({ first, pages });
    for (let page = first; page < first + pages; page++) {
      if (this.#isUsed(page)) throw this.corruption(`page ${page} is used and free`);
    }
  }

  corruption(what: string): LogCorruption {
    return new LogCorruption(`${this.path} is damaged, ${what}: restore it from a copy`);
  }

  #refuseOutside({ first, pages }: PageRange): void {
    if (first >= METAS && pages > 0 && first + pages <= this.#pagesEnd) return;
    throw this.corruption(`it refers to page ${first}, which is none`);
  }

  #isUsed(page: number): boolean {
    return ((this.#used[page >> 3] ?? 0) & (1 << (page & 7))) !== 0;
  }
}
