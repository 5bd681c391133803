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
  #text = '';
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
    // Only what is new is searched: a large event comes in many chunks.
    let from = this.#text.length;
    this.#text += text;
    let start = 0;
    for (;;) {
      const end = lineEnd(this.#text, Math.max(start, from));
      if (end < 0) break;
      const line = this.#text.slice(start, end);
      start = end + (this.#text.charCodeAt(end) === CR && this.#text.charCodeAt(end + 1) === LF ? 2 : 1);
      from = start;
      if (line !== '') this.#field(line);
      else if (this.#hasBlock) yield this.#take();
    }
    this.#text = this.#text.slice(start);
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

function lineEnd(text: string, from: number): number {
  const lf = text.indexOf('\n', from);
  const cr = text.indexOf('\r', from);
  return cr >= 0 && (lf < 0 || cr < lf) ? cr : lf;
}
