import { assert } from '../assert.js';

const LF = 0x0a;
const DOT = 0x2e;
const ZERO = 0x30;

const encoder = new TextEncoder();
const decoder = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true });
const ID_FIELD = encoder.encode('id: ');
const EVENT_FIELD = encoder.encode('event: ');
const ENCODING_LINE = encoder.encode('encoding: base64\n');
const DATA_FIELD = encoder.encode('data: ');

/** One event, read back from its frame. */
export interface ParsedEvent {
  readonly seq: number;
  /** Null for an untyped event, which readers see as `message`. */
  readonly type: string | null;
  /** `base64`: the event is binary and `data` its base64; null: `data` is the text. */
  readonly encoding: 'base64' | null;
  /** Bytes of UTF-8; a view on the frame's own bytes where the data has one line. */
  readonly data: Uint8Array;
}

/**
 * Reads a run of whole frames, exactly as {@link FrameBatch} and {@link IdLine} write them, back into events. Anything
 * else in there is a broken invariant of ours, for no other bytes get into a ring or log. Cold path: pages.
 */
export function parseFrames(bytes: Uint8Array): ParsedEvent[] {
  const events: ParsedEvent[] = [];
  const frames = new FrameReader(bytes);
  while (frames.next()) {
    events.push({
      seq: frames.seq,
      type: frames.type,
      encoding: frames.isBinary ? 'base64' : null,
      data: frames.readData(),
    });
  }
  return events;
}

/**
 * The frames whose type is in `types`, byte for byte and in order, and how many they are (contract 4.9); `message`
 * names the untyped ones. Answers `bytes` itself when nothing is left out.
 */
export function filterFrames(
  bytes: Uint8Array,
  types: ReadonlySet<string>,
): { frames: Uint8Array; count: number } {
  const runs: number[] = [];
  let size = 0;
  let count = 0;
  const frames = new FrameReader(bytes);
  while (frames.next()) {
    if (!types.has(frames.type ?? 'message')) continue;
    count++;
    size += frames.end - frames.start;
    if (runs.at(-1) === frames.start) runs[runs.length - 1] = frames.end;
    else runs.push(frames.start, frames.end);
  }
  if (size === bytes.length) return { frames: bytes, count };

  const kept = new Uint8Array(size);
  let at = 0;
  for (let i = 0; i < runs.length; i += 2) {
    const run = bytes.subarray(runs[i], runs[i + 1]);
    kept.set(run, at);
    at += run.length;
  }
  return { frames: kept, count };
}

/** Steps through frames that stand back to back. */
class FrameReader {
  /** The current frame is bytes[start, end), its empty line included. */
  start = 0;
  end = 0;
  seq = 0;
  type: string | null = null;
  isBinary = false;

  readonly #bytes: Uint8Array;
  #dataStart = 0;
  #dataLines = 0;
  /** Where the type stood last: the frames of a run mostly share one, which is then decoded once. */
  #typeStart = 0;
  #typeEnd = 0;
  #lastType = '';

  constructor(bytes: Uint8Array) {
    this.#bytes = bytes;
  }

  /** Moves to the next frame; false at the end of the bytes. */
  next(): boolean {
    if (this.end === this.#bytes.length) return false;
    this.start = this.end;
    let at = this.#readId(this.start);
    at = this.#readType(at);
    this.isBinary = this.#hasField(ENCODING_LINE, at);
    if (this.isBinary) at += ENCODING_LINE.length;
    this.#dataStart = at;
    this.#dataLines = 0;
    while (this.#bytes[at] !== LF) {
      assert(this.#hasField(DATA_FIELD, at), 'a frame ends with its data lines');
      at = this.#lineEnd(at) + 1;
      this.#dataLines++;
    }
    assert(this.#dataLines > 0, 'a frame has data');
    this.end = at + 1;
    return true;
  }

  /** The data of the current frame, its lines joined with LF. */
  readData(): Uint8Array {
    const first = this.#dataStart + DATA_FIELD.length;
    // The last line feed and the empty line are not data.
    if (this.#dataLines === 1) return this.#bytes.subarray(first, this.end - 2);

    const data = new Uint8Array(this.end - 2 - this.#dataStart - this.#dataLines * DATA_FIELD.length);
    let at = this.#dataStart;
    for (let line = 0, size = 0; line < this.#dataLines; line++) {
      const lineEnd = this.#lineEnd(at);
      data.set(this.#bytes.subarray(at + DATA_FIELD.length, lineEnd), size);
      size += lineEnd - at - DATA_FIELD.length;
      if (size < data.length) data[size++] = LF;
      at = lineEnd + 1;
    }
    return data;
  }

  #readId(start: number): number {
    assert(this.#hasField(ID_FIELD, start), 'a frame begins with its id');
    const dot = this.#bytes.indexOf(DOT, start);
    const lineEnd = this.#lineEnd(start);
    assert(dot > start && dot < lineEnd - 1, 'an id is <epoch>.<seq>');
    let seq = 0;
    for (let at = dot + 1; at < lineEnd; at++) {
      const digit = (this.#bytes[at] as number) - ZERO;
      assert(digit >= 0 && digit <= 9, 'a seq is decimal');
      seq = seq * 10 + digit;
    }
    assert(Number.isSafeInteger(seq) && seq >= 1, 'a seq is a whole number from 1');
    this.seq = seq;
    return lineEnd + 1;
  }

  #readType(start: number): number {
    if (!this.#hasField(EVENT_FIELD, start)) {
      this.type = null;
      return start;
    }
    const typeStart = start + EVENT_FIELD.length;
    const typeEnd = this.#lineEnd(start);
    if (!this.#isLastType(typeStart, typeEnd)) {
      this.#lastType = decoder.decode(this.#bytes.subarray(typeStart, typeEnd));
      this.#typeStart = typeStart;
      this.#typeEnd = typeEnd;
    }
    this.type = this.#lastType;
    return typeEnd + 1;
  }

  #isLastType(start: number, end: number): boolean {
    if (end - start !== this.#typeEnd - this.#typeStart) return false;
    for (let i = start, j = this.#typeStart; i < end; i++, j++) {
      if (this.#bytes[i] !== this.#bytes[j]) return false;
    }
    return true;
  }

  #hasField(field: Uint8Array, at: number): boolean {
    for (let i = 0; i < field.length; i++) {
      if (this.#bytes[at + i] !== field[i]) return false;
    }
    return true;
  }

  #lineEnd(at: number): number {
    const end = this.#bytes.indexOf(LF, at);
    assert(end >= 0, 'frames are whole');
    return end;
  }
}
