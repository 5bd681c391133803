/** Lines of UTF-8 out of chunks cut anywhere, bounded. */
export class LineDecoder {
  readonly #bytesMax: number;
  #pending: Buffer[] = [];
  #pendingBytes = 0;

  constructor(bytesMax: number) {
    this.#bytesMax = bytesMax;
  }

  /** The lines that end in this chunk; null: one is longer than it may be. */
  push(chunk: Buffer): string[] | null {
    const lines: string[] = [];
    let start = 0;
    for (let end = chunk.indexOf(LF); end >= 0; end = chunk.indexOf(LF, start)) {
      this.#keep(chunk.subarray(start, end));
      start = end + 1;
      if (this.#pendingBytes > this.#bytesMax) return null;
      lines.push(Buffer.concat(this.#pending).toString());
      this.#pending = [];
      this.#pendingBytes = 0;
    }
    this.#keep(chunk.subarray(start));
    return this.#pendingBytes > this.#bytesMax ? null : lines;
  }

  #keep(part: Buffer): void {
    if (part.length === 0) return;
    this.#pending.push(part);
    this.#pendingBytes += part.length;
  }
}

const LF = 0x0a;
