import { RequestError } from '../errors.js';

const QUOTE = 0x22;
const COMMA = 0x2c;
const OPEN_ARRAY = 0x5b;
const BACKSLASH = 0x5c;
const CLOSE_ARRAY = 0x5d;
const OPEN_OBJECT = 0x7b;
const CLOSE_OBJECT = 0x7d;
const SPACE = 0x20;

const decoder = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true });

/** Finds the values of a JSON text of UTF-8. Constant memory, however the text is nested. */
export class JsonScanner {
  at = 0;
  readonly #bytes: Uint8Array;

  constructor(bytes: Uint8Array) {
    this.#bytes = bytes;
  }

  /** Skips white space and returns where the next token begins. */
  skipSpace(): number {
    while (isSpace(this.#bytes[this.at])) this.at++;
    return this.at;
  }

  take(byte: number, expected: string): void {
    if (!this.takeIf(byte)) throw this.unexpected(expected);
  }

  takeIf(byte: number): boolean {
    if (this.#bytes[this.skipSpace()] !== byte) return false;
    this.at++;
    return true;
  }

  takeEnd(): void {
    if (this.skipSpace() < this.#bytes.length) throw this.unexpected('the end');
  }

  takeString(): string {
    const start = this.skipSpace();
    if (this.#bytes[start] !== QUOTE) throw this.unexpected('a string');
    this.#skipString();
    return this.parse(start, this.at) as string;
  }

  /**
   * Moves behind the value that begins here. A string without escapes is valid then, for it has no control characters;
   * of any other value only the end is known, and {@link parse} must check it.
   *
   * @returns whether it is a string with escapes.
   */
  skipValue(): boolean {
    const first = this.#bytes[this.at];
    if (first === QUOTE) return this.#skipString();
    if (first === OPEN_OBJECT || first === OPEN_ARRAY) this.#skipNested();
    else this.#skipScalar();
    return false;
  }

  /** Reads the value between ends that the scanner found; what the scanner does not check, this does. */
  parse(start: number, end: number): unknown {
    try {
      return JSON.parse(decoder.decode(this.#bytes.subarray(start, end)));
    } catch {
      throw new RequestError('invalid_body', `the value at byte ${start} is not JSON`);
    }
  }

  unexpected(expected: string): RequestError {
    return new RequestError('invalid_body', `byte ${this.at}: expected ${expected}`);
  }

  #skipString(): boolean {
    let isEscaped = false;
    for (;;) {
      const byte = this.#bytes[++this.at];
      if (byte === undefined || byte < SPACE) throw this.unexpected('the rest of a string');
      if (byte === QUOTE) break;
      if (byte === BACKSLASH) {
        isEscaped = true;
        this.at++;
      }
    }
    this.at++;
    return isEscaped;
  }

  #skipNested(): void {
    let depth = 0;
    do {
      const byte = this.#bytes[this.at];
      if (byte === undefined) throw this.unexpected('the rest of a value');
      if (byte === QUOTE) {
        this.#skipString();
        continue;
      }
      if (byte === OPEN_OBJECT || byte === OPEN_ARRAY) depth++;
      else if (byte === CLOSE_OBJECT || byte === CLOSE_ARRAY) depth--;
      this.at++;
    } while (depth > 0);
  }

  #skipScalar(): void {
    const start = this.at;
    for (;;) {
      const byte = this.#bytes[this.at];
      if (byte === undefined || byte === COMMA || byte === CLOSE_OBJECT || byte === CLOSE_ARRAY) break;
      if (isSpace(byte)) break;
      this.at++;
    }
    if (this.at === start) throw this.unexpected('a value');
  }
}

function isSpace(byte: number | undefined): boolean {
  return byte === SPACE || byte === 0x0a || byte === 0x0d || byte === 0x09;
}
