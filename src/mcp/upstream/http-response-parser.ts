/**
 * HTTP/1.1 responses (RFC 9112) out of bytes cut anywhere, each to a request that was not HEAD. Bounded: a body goes on as
 * it comes, and everything else has a largest size.
 */

export interface ResponseHead {
  readonly status: number;
  /** Names in lower case; the values of one that came more than once are joined by a comma. */
  readonly headers: ReadonlyMap<string, string>;
}

export interface ResponseHandler {
  head(head: ResponseHead): void;
  body(bytes: Buffer): void;
  /** The response is whole. @param reusable whether another may follow on the same connection. */
  end(reusable: boolean): void;
}

/** What came is no HTTP/1.1, or more than is read. */
export class ResponseError extends Error {}

type State = 'head' | 'length' | 'until-close' | 'chunk-size' | 'chunk' | 'chunk-end' | 'trailer';

const HEAD_BYTES_MAX = 64 * 1024;
/** A chunk's size with its extensions, or a trailer. */
const LINE_BYTES_MAX = 4096;
const HEAD_END = Buffer.from('\r\n\r\n');
const LINE_END = Buffer.from('\r\n');
const EMPTY = Buffer.alloc(0);

const STATUS_LINE = /^HTTP\/1\.([01]) ([1-9]\d\d)(?: |$)/;
const HEADER_LINE = /^([!#$%&'*+.^_`|~0-9A-Za-z-]+):[ \t]*(.*?)[ \t]*$/;
const CLOSE = /(?:^|,)\s*close\s*(?:,|$)/i;
const LENGTH = /^\d{1,15}$/;
const CHUNK_SIZE = /^([0-9a-f]{1,8})[ \t]*(?:;.*)?$/i;

export class HttpResponseParser {
  readonly #handler: ResponseHandler;
  #state: State = 'head';
  #pending: Buffer = EMPTY;
  #bytesLeft = 0;
  #reusable = true;

  constructor(handler: ResponseHandler) {
    this.#handler = handler;
  }

  /** @throws {ResponseError} */
  push(bytes: Buffer): void {
    this.#pending = this.#pending.length === 0 ? bytes : Buffer.concat([this.#pending, bytes]);
    while (this.#pending.length > 0 && this.#step());
  }

  /** The peer closed: the end of a body that says neither its length nor its chunks. Else what is open is broken. */
  close(): void {
    if (this.#state === 'until-close') this.#end();
  }

  /** False: more bytes are needed. */
  #step(): boolean {
    switch (this.#state) {
      case 'head':
        return this.#readHead();
      case 'length':
      case 'chunk':
        return this.#readBytes();
      case 'until-close':
        this.#handler.body(this.#take(this.#pending.length));
        return false;
      case 'chunk-size':
        return this.#readLine((line) => this.#beginChunk(line));
      case 'chunk-end':
        return this.#readLine((line) => {
          if (line !== '') throw new ResponseError('a chunk is longer than its size');
          this.#state = 'chunk-size';
        });
      case 'trailer':
        return this.#readLine((line) => {
          if (line === '') this.#end();
        });
    }
  }

  #readHead(): boolean {
    const end = this.#pending.indexOf(HEAD_END);
    if (Math.max(end, this.#pending.length * Number(end < 0)) > HEAD_BYTES_MAX) {
      throw new ResponseError('the head is too long');
    }
    if (end < 0) return false;
    const [statusLine = '', ...lines] = this.#take(end + HEAD_END.length)
      .toString('latin1', 0, end)
      .split('\r\n');
    const [, minor, status] = STATUS_LINE.exec(statusLine) ?? [];
    if (status === undefined || status === '101') throw new ResponseError('no status that can be used');
    // What comes before the response, such as 100 and 103.
    if (status.startsWith('1')) return true;
    const head = { status: Number(status), headers: readHeaders(lines) };
    this.#reusable = minor === '1' && !CLOSE.test(head.headers.get('connection') ?? '');
    this.#handler.head(head);
    this.#beginBody(head);
    return true;
  }

  /** RFC 9112, 6.3. */
  #beginBody({ status, headers }: ResponseHead): void {
    const length = headers.get('content-length');
    const encoding = headers.get('transfer-encoding')?.toLowerCase();
    if (status === 204 || status === 304) return this.#end();
    if (encoding !== undefined) {
      if (encoding !== 'chunked' || length !== undefined) throw new ResponseError('no length to go by');
      this.#state = 'chunk-size';
    } else if (length === undefined) {
      this.#reusable = false;
      this.#state = 'until-close';
    } else {
      if (!LENGTH.test(length)) throw new ResponseError('no length to go by');
      this.#bytesLeft = Number(length);
      this.#state = 'length';
      if (this.#bytesLeft === 0) this.#end();
    }
  }

  #beginChunk(line: string): void {
    const [, size] = CHUNK_SIZE.exec(line) ?? [];
    if (size === undefined) throw new ResponseError('no size of a chunk');
    this.#bytesLeft = Number.parseInt(size, 16);
    this.#state = this.#bytesLeft === 0 ? 'trailer' : 'chunk';
  }

  #readBytes(): boolean {
    const bytes = this.#take(Math.min(this.#bytesLeft, this.#pending.length));
    this.#bytesLeft -= bytes.length;
    this.#handler.body(bytes);
    if (this.#bytesLeft > 0) return false;
    if (this.#state === 'length') this.#end();
    else this.#state = 'chunk-end';
    return true;
  }

  #readLine(read: (line: string) => void): boolean {
    const end = this.#pending.indexOf(LINE_END);
    if (end > LINE_BYTES_MAX || (end < 0 && this.#pending.length > LINE_BYTES_MAX)) {
      throw new ResponseError('a line is too long');
    }
    if (end < 0) return false;
    read(this.#take(end + LINE_END.length).toString('latin1', 0, end));
    return true;
  }

  #end(): void {
    this.#state = 'head';
    this.#handler.end(this.#reusable);
  }

  #take(length: number): Buffer {
    const bytes = this.#pending.subarray(0, length);
    this.#pending = this.#pending.subarray(length);
    return bytes;
  }
}

function readHeaders(lines: readonly string[]): ReadonlyMap<string, string> {
  const headers = new Map<string, string>();
  for (const line of lines) {
    const [, name, value = ''] = HEADER_LINE.exec(line) ?? [];
    if (name === undefined) throw new ResponseError('no header line');
    const lower = name.toLowerCase();
    const before = headers.get(lower);
    headers.set(lower, before === undefined ? value : `${before}, ${value}`);
  }
  return headers;
}
