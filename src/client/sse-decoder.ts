/** A block of an event stream, up to its blank line. */
export interface SseFrame {
  /** Null where the block has no `id`. */
  readonly id: string | null;
  /** Empty where the block has no `event`. */
  readonly type: string;
  /** Null where the block has no `data`: it moves the position and is no event. */
  readonly data: string | null;
  /** Whether `data` is base64 (contract 4.3). */
  readonly isBinary: boolean;
}

const CR = 13;
const LF = 10;

/**
 * Reads an event stream as it comes, cut anywhere (WHATWG HTML, 9.2.6 "Interpreting an event stream"). What follows the
 * last blank line is no block, and is given to nobody. Bounded by the longest block: the server's `eventBytesMax`.
 */
export class SseDecoder {
  /** The server's last `retry`, milliseconds; null before the first. */
  retryMs: number | null = null;

  /** A mark at the beginning is skipped, which is what this decoder does by default. */
  readonly #decoder = new TextDecoder();
  /** Of a line that has not ended: put together once, for a large event comes in many chunks. */
  #begun: string[] = [];
  /** The last text ended with CR: a LF that follows belongs to it. */
  #endedWithCr = false;
  #id: string | null = null;
  #type = '';
  #data: string[] = [];
  #isBinary = false;

  /** The blocks that end in this chunk. */
  *push(chunk: Uint8Array): Generator<SseFrame> {
    let text = this.#decoder.decode(chunk, { stream: true });
    if (text === '') return;
    if (this.#endedWithCr && text.charCodeAt(0) === LF) text = text.slice(1);
    this.#endedWithCr = text.charCodeAt(text.length - 1) === CR;
    // Each is looked for once up to where it stands: most streams have no CR at all.
    let lf = text.indexOf('\n');
    let cr = text.indexOf('\r');
    let start = 0;
    for (;;) {
      if (lf >= 0 && lf < start) lf = text.indexOf('\n', start);
      if (cr >= 0 && cr < start) cr = text.indexOf('\r', start);
      const end = cr >= 0 && (lf < 0 || cr < lf) ? cr : lf;
      if (end < 0) break;
      const line = this.#takeLine(text.slice(start, end));
      start = end + (end === cr && lf === cr + 1 ? 2 : 1);
      if (line !== '') this.#field(line);
      else if (this.#hasBlock) yield this.#take();
    }
    if (start < text.length) this.#begun.push(text.slice(start));
  }

  /** @param end of a line, whose beginning may have come in earlier chunks. */
  #takeLine(end: string): string {
    if (this.#begun.length === 0) return end;
    const line = this.#begun.join('') + end;
    this.#begun = [];
    return line;
  }

  get #hasBlock(): boolean {
    return this.#id !== null || this.#data.length > 0 || this.#type !== '';
  }

  #field(line: string): void {
    const colon = line.indexOf(':');
    if (colon === 0) return;
    const name = colon < 0 ? line : line.slice(0, colon);
    const value = colon < 0 ? '' : line.slice(line.charCodeAt(colon + 1) === 32 ? colon + 2 : colon + 1);
    switch (name) {
      case 'id':
        if (!value.includes('\0')) this.#id = value;
        break;
      case 'event':
        this.#type = value;
        break;
      case 'data':
        this.#data.push(value);
        break;
      case 'encoding':
        this.#isBinary = value === 'base64';
        break;
      case 'retry':
        if (/^[0-9]+$/.test(value)) this.retryMs = Number(value);
    }
  }

  #take(): SseFrame {
    const data = this.#data.length === 0 ? null : this.#data.join('\n');
    const frame = { id: this.#id, type: this.#type, data, isBinary: this.#isBinary };
    this.#id = null;
    this.#type = '';
    this.#data = [];
    this.#isBinary = false;
    return frame;
  }
}
