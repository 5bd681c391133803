import { assert } from '../assert.js';
import { RequestError } from '../errors.js';
import { base64Size, writeBase64 } from './base64.js';
import { TYPE_BYTES_MAX } from './event-type.js';

/* Hot path: no allocation per event beyond amortised growth, no closures. */

const LF = 0x0a;
const CR = 0x0d;
const DOT = 0x2e;
const ZERO = 0x30;
const NINE = 0x39;

/** What a data line takes beside its text: `data: `, its line feed, and the empty line that may follow. */
const DATA_LINE_BYTES = 8;

/** `id: `, an epoch of at most 16, the dot, 16 digits, the line feed; rounded up. */
const ID_LINE_BYTES_MAX = 40;

const BYTES_INITIAL = 4096;
const ENDS_INITIAL = 64;

const encoder = new TextEncoder();
const DATA_FIELD = encoder.encode('data: ');
const EVENT_FIELD = encoder.encode('event: ');
const ENCODING_LINE = encoder.encode('encoding: base64\n');

/**
 * The events of one publish, each framed as everything of its SSE frame after the `id` line (contract 4.3):
 *
 *     [event: <type>\n] [encoding: base64\n] data: <line>\n … \n
 *
 * The parts stand back to back in `bytes`; part i ends at `ends[i]`. `bytes` and `ends` are replaced as they grow:
 * read them anew after a push. When a push throws, the batch holds part of an event and must be `reset`.
 */
export class FrameBatch {
  count = 0;
  size = 0;
  bytes: Uint8Array;
  ends = new Uint32Array(ENDS_INITIAL);

  readonly #bytesMax: number;
  /** The `event` line of the last type, kept because the events of a publish mostly share one. */
  readonly #eventLine = new Uint8Array(EVENT_FIELD.length + TYPE_BYTES_MAX + 1);
  readonly #eventLineType = this.#eventLine.subarray(EVENT_FIELD.length, EVENT_FIELD.length + TYPE_BYTES_MAX);
  #eventLineSize = 0;
  #type: string | null = null;

  /**
   * @param bytesMax bound of the framed bytes of one batch; above it a push throws {@link RequestError}
   *   `batch_too_large`, or `event_too_large` when it is the first event alone.
   */
  constructor(bytesMax: number) {
    assert(bytesMax > 0 && bytesMax <= 0xffff_ffff, 'a batch is addressed with 32 bits');
    this.#bytesMax = bytesMax;
    this.bytes = new Uint8Array(Math.min(BYTES_INITIAL, bytesMax));
    this.#eventLine.set(EVENT_FIELD);
  }

  reset(): void {
    this.count = 0;
    this.size = 0;
  }

  /**
   * Frames data[start, end), which is UTF-8, as one text event. Each of CR, CRLF and LF ends a line (contract 3.1),
   * and the reader joins the lines with LF. The bytes are copied: `data` may be gone after the call.
   *
   * @param type the event type, already checked; null, empty and `message` write no `event` line.
   */
  pushText(data: Uint8Array, start: number, end: number, type: string | null): void {
    let at = this.#begin(type);
    let lineStart = start;
    for (;;) {
      this.#reserve(at + DATA_LINE_BYTES + (end - lineStart));
      at = copyShort(DATA_FIELD, DATA_FIELD.length, this.bytes, at);
      const lineEnd = copyLine(data, lineStart, end, this.bytes, at);
      at += lineEnd - lineStart;
      this.bytes[at++] = LF;
      if (lineEnd === end) break;
      lineStart = lineEnd + 1;
      if (data[lineEnd] === CR && lineStart < end && data[lineStart] === LF) lineStart++;
    }
    this.#finish(at);
  }

  /** Frames data[start, end) as one binary event: base64 on one line, marked so (contract 3.1). */
  pushBinary(data: Uint8Array, start: number, end: number, type: string | null): void {
    let at = this.#begin(type);
    this.#reserve(at + ENCODING_LINE.length + DATA_LINE_BYTES + base64Size(end - start));
    at = copyShort(ENCODING_LINE, ENCODING_LINE.length, this.bytes, at);
    at = copyShort(DATA_FIELD, DATA_FIELD.length, this.bytes, at);
    at = writeBase64(data, start, end, this.bytes, at);
    this.bytes[at++] = LF;
    this.#finish(at);
  }

  #begin(type: string | null): number {
    if (type === null || type === '' || type === 'message') return this.size;
    if (type !== this.#type) this.#setType(type);
    this.#reserve(this.size + this.#eventLineSize);
    return copyShort(this.#eventLine, this.#eventLineSize, this.bytes, this.size);
  }

  #setType(type: string): void {
    const { read, written } = encoder.encodeInto(type, this.#eventLineType);
    assert(read === type.length, 'an event type is checked before it is framed');
    this.#eventLineSize = EVENT_FIELD.length + written + 1;
    this.#eventLine[this.#eventLineSize - 1] = LF;
    this.#type = type;
  }

  /** Ends the frame with its empty line, for which {@link DATA_LINE_BYTES} has kept a byte. */
  #finish(at: number): void {
    assert(at < this.bytes.length, 'the frame was reserved whole');
    this.bytes[at++] = LF;
    if (this.count === this.ends.length) this.#growEnds();
    this.ends[this.count++] = at;
    this.size = at;
  }

  #reserve(size: number): void {
    if (size > this.bytes.length) this.#growBytes(size);
  }

  #growBytes(size: number): void {
    if (size > this.#bytesMax) {
      const code = this.count === 0 ? 'event_too_large' : 'batch_too_large';
      throw new RequestError(code, `more than ${this.#bytesMax} bytes when framed`, {
        limit: this.#bytesMax,
      });
    }
    const grown = new Uint8Array(Math.min(this.#bytesMax, Math.max(size, this.bytes.length * 2)));
    grown.set(this.bytes);
    this.bytes = grown;
  }

  #growEnds(): void {
    const grown = new Uint32Array(this.ends.length * 2);
    grown.set(this.ends);
    this.ends = grown;
  }
}

/**
 * Copies a line from data[start, end) to `to` at `at` and returns where it ends in `data`: at its CR or LF, or at `end`.
 * One pass, four bytes a step while none is a control character; twice as fast on 100 bytes as to search and then copy.
 */
function copyLine(data: Uint8Array, start: number, end: number, to: Uint8Array, at: number): number {
  const shift = at - start;
  let i = start;
  for (;;) {
    for (; i + 3 < end; i += 4) {
      const a = data[i] as number;
      const b = data[i + 1] as number;
      const c = data[i + 2] as number;
      const d = data[i + 3] as number;
      if (a <= CR || b <= CR || c <= CR || d <= CR) break;
      to[i + shift] = a;
      to[i + shift + 1] = b;
      to[i + shift + 2] = c;
      to[i + shift + 3] = d;
    }
    if (i === end) return end;
    const byte = data[i] as number;
    if (byte === LF || byte === CR) return i;
    to[i + shift] = byte;
    i++;
  }
}

/** Copies the first `size` bytes of something short: for those, the view that `set` takes costs more than a loop. */
function copyShort(from: Uint8Array, size: number, to: Uint8Array, at: number): number {
  for (let i = 0; i < size; i++) to[at + i] = from[i] as number;
  return at + size;
}

/**
 * The `id: <epoch>.<seq>` line of consecutive events (contract 4.3). `next` counts up in the decimal digits where
 * they stand, so an id costs a byte or two of work instead of a number made into text.
 */
export class IdLine {
  /** The line, with its line feed, is bytes[0, length). */
  readonly bytes = new Uint8Array(ID_LINE_BYTES_MAX);
  length = 0;
  #digitsStart = 0;

  constructor() {
    this.#write('id: ', 0);
  }

  /** Sets the line to the first seq of a run. */
  start(epoch: string, firstSeq: number): void {
    assert(Number.isSafeInteger(firstSeq) && firstSeq >= 0, 'a seq is a whole number up to 2^53-1');
    assert(epoch.length <= 16, 'an epoch has at most 16 characters');
    let at = this.#write(epoch, 4);
    this.bytes[at++] = DOT;
    this.#digitsStart = at;
    at = this.#write(String(firstSeq), at);
    this.bytes[at++] = LF;
    this.length = at;
  }

  /** Moves the line to the next seq. */
  next(): void {
    const bytes = this.bytes;
    let at = this.length - 2;
    while (bytes[at] === NINE) bytes[at--] = ZERO;
    if (at >= this.#digitsStart) {
      bytes[at] = (bytes[at] as number) + 1;
      return;
    }
    // All digits were nines: 99 is 00 by now and becomes 100.
    bytes[this.#digitsStart] = ZERO + 1;
    bytes[this.length - 1] = ZERO;
    bytes[this.length++] = LF;
  }

  #write(ascii: string, at: number): number {
    for (let i = 0; i < ascii.length; i++) this.bytes[at + i] = ascii.charCodeAt(i);
    return at + ascii.length;
  }
}

/** A comment for idle connections (contract 4.3). Carries no field, so a reader takes nothing from it. */
export const HEARTBEAT = ':\n\n';

/** Sets how long an `EventSource` waits before it reconnects, in milliseconds (contract 4.2). */
export function retryFrame(ms: number): string {
  return `retry: ${ms}\n\n`;
}

/**
 * An id without data: moves the reader's last id and dispatches nothing. After the `retry:` it is the priming frame
 * (contract 4.2); on a filtered stream it passes over what was left out (contract 4.9).
 */
export function idFrame(cursor: string): string {
  return `id: ${cursor}\n\n`;
}

/** The first frame with an id on a connection (contract 4.2): where this subscription begins. */
export const primingFrame = idFrame;

/** A frame of the server's own, such as `stream_closed` (contract 4.5, 4.7); without `id` the reader's last id stands. */
export function eventFrame(type: string, data: string, id?: string): string {
  const idLine = id === undefined ? '' : `id: ${id}\n`;
  const dataLines = data.replace(/\r\n|\r|\n/g, '\ndata: ');
  return `${idLine}event: ${type}\ndata: ${dataLines}\n\n`;
}
