export interface ResponseHead {
  status: number;
  reason: string;
  /** Names in lower case; a name that came twice has its values joined by a comma. */
  headers: ReadonlyMap<string, string>;
}

export interface ResponseHandler {
  onHead(head: ResponseHead): void;
  onBody(chunk: Buffer): void;
  /** The response is complete: its last chunk or the last byte of its length has come. */
  onEnd(): void;
}

type State = 'head' | 'length' | 'until-close' | 'chunk-size' | 'chunk-data' | 'chunk-end' | 'trailer';

const HEAD_BYTES_MAX = 64 * 1024;
const EMPTY = Buffer.alloc(0);

/**
 * Reads HTTP/1.1 responses (RFC 9112) from a byte stream cut anywhere. Written for these tests rather than taken from
 * Node so that they see what is on the wire: whether a chunked body ended properly is the difference between "the end"
 * and "cut" (contract 4.6, 10).
 */
export class HttpResponseParser {
  #state: State = 'head';
  #pending: Buffer = EMPTY;
  #bodyBytesLeft = 0;
  #bodyless: boolean[] = [];

  constructor(readonly handler: ResponseHandler) {}

  /** Call once a request, in order: a response to HEAD carries a length but no body. */
  expectResponseTo(method: string): void {
    this.#bodyless.push(method === 'HEAD');
  }

  /** False while a response has begun and is not over: a close now is a cut. */
  get isBetweenResponses(): boolean {
    return this.#state === 'head' && this.#pending.length === 0;
  }

  push(chunk: Buffer): void {
    this.#pending = this.#pending.length === 0 ? chunk : Buffer.concat([this.#pending, chunk]);
    while (this.#pending.length > 0 && this.#step()) {}
  }

  /** The peer closed. A body without length or chunks ends that way; anything else that was open is cut. */
  finish(): void {
    if (this.#state === 'until-close') this.#endResponse();
  }

  #step(): boolean {
    switch (this.#state) {
      case 'head':
        return this.#readHead();
      case 'length':
      case 'chunk-data':
        return this.#readCountedBytes();
      case 'until-close':
        this.handler.onBody(this.#take(this.#pending.length));
        return false;
      case 'chunk-size':
        return this.#readChunkSize();
      case 'chunk-end':
        return this.#readChunkEnd();
      case 'trailer':
        return this.#readTrailer();
    }
  }

  #readHead(): boolean {
    const end = this.#pending.indexOf('\r\n\r\n');
    if (end < 0) {
      if (this.#pending.length > HEAD_BYTES_MAX) throw new Error('the head of a response never ends');
      return false;
    }
    const [statusLine = '', ...lines] = this.#take(end + 4)
      .toString('latin1', 0, end)
      .split('\r\n');
    const match = /^HTTP\/1\.1 (\d{3}) ?(.*)$/.exec(statusLine);
    if (match === null) throw new Error(`not a status line: ${JSON.stringify(statusLine)}`);
    const status = Number(match[1]);
    const headers = parseHeaders(lines);
    this.handler.onHead({ status, reason: match[2] ?? '', headers });
    if (status < 200) return true;
    this.#beginBody(status, headers, this.#bodyless.shift() ?? false);
    return true;
  }

  #beginBody(status: number, headers: ReadonlyMap<string, string>, bodyless: boolean): void {
    const length = headers.get('content-length');
    const chunked = headers.get('transfer-encoding')?.toLowerCase() === 'chunked';
    if (chunked && length !== undefined) throw new Error('a response with both a length and chunks');
    if (bodyless || status === 204 || status === 304) {
      this.#endResponse();
    } else if (chunked) {
      this.#state = 'chunk-size';
    } else if (length === undefined) {
      this.#state = 'until-close';
    } else {
      if (!/^\d+$/.test(length)) throw new Error(`not a length: ${length}`);
      this.#bodyBytesLeft = Number(length);
      this.#state = 'length';
      if (this.#bodyBytesLeft === 0) this.#endResponse();
    }
  }

  #readCountedBytes(): boolean {
    const bytes = this.#take(Math.min(this.#bodyBytesLeft, this.#pending.length));
    this.#bodyBytesLeft -= bytes.length;
    this.handler.onBody(bytes);
    if (this.#bodyBytesLeft > 0) return false;
    if (this.#state === 'length') this.#endResponse();
    else this.#state = 'chunk-end';
    return true;
  }

  #readChunkSize(): boolean {
    const line = this.#takeLine();
    if (line === undefined) return false;
    if (!/^[0-9a-f]+$/i.test(line)) throw new Error(`not a chunk size: ${JSON.stringify(line)}`);
    this.#bodyBytesLeft = Number.parseInt(line, 16);
    this.#state = this.#bodyBytesLeft === 0 ? 'trailer' : 'chunk-data';
    return true;
  }

  #readChunkEnd(): boolean {
    const line = this.#takeLine();
    if (line === undefined) return false;
    if (line !== '') throw new Error(`a chunk longer than its size: ${JSON.stringify(line.slice(0, 40))}`);
    this.#state = 'chunk-size';
    return true;
  }

  #readTrailer(): boolean {
    const line = this.#takeLine();
    if (line === undefined) return false;
    if (line === '') this.#endResponse();
    return true;
  }

  #endResponse(): void {
    this.#state = 'head';
    this.handler.onEnd();
  }

  #takeLine(): string | undefined {
    const end = this.#pending.indexOf('\r\n');
    if (end < 0) return undefined;
    return this.#take(end + 2).toString('latin1', 0, end);
  }

  #take(length: number): Buffer {
    const bytes = this.#pending.subarray(0, length);
    this.#pending = this.#pending.subarray(length);
    return bytes;
  }
}

function parseHeaders(lines: readonly string[]): Map<string, string> {
  const headers = new Map<string, string>();
  for (const line of lines) {
    const match = /^([!#$%&'*+.^_`|~0-9A-Za-z-]+):[ \t]*(.*?)[ \t]*$/.exec(line);
    if (match?.[1] === undefined) throw new Error(`not a header line: ${JSON.stringify(line)}`);
    const name = match[1].toLowerCase();
    const before = headers.get(name);
    headers.set(name, before === undefined ? (match[2] ?? '') : `${before}, ${match[2] ?? ''}`);
  }
  return headers;
}
