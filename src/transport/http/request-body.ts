/**
 * Reads a request's body, bounded. The common small body comes in one piece and is handed on without a copy.
 * A body that never ends is the library's to cut off: it asks for progress, and nothing is kept but the bytes.
 */

import type { HttpResponse } from 'uWebSockets.js';

const COLLECTED_BYTES_INITIAL = 16 * 1024;

/**
 * @param done called once, with the whole body (valid during the call only), or with null as soon as it is
 *   larger than `bytesMax`. Not called when the peer goes away first.
 */
export function readBody(res: HttpResponse, bytesMax: number, done: (body: Uint8Array | null) => void): void {
  let collected: Uint8Array | null = null;
  let length = 0;
  let over = false;
  res.onData((chunk, isLast) => {
    if (over) return;
    const piece = new Uint8Array(chunk);
    if (length + piece.length > bytesMax) {
      over = true;
      done(null);
    } else if (isLast && collected === null) {
      over = true;
      done(piece);
    } else {
      // The library takes the chunk back when this returns.
      collected = appended(collected, length, piece, bytesMax);
      length += piece.length;
      if (!isLast) return;
      over = true;
      done(collected.subarray(0, length));
    }
  });
}

/** A body that comes while it is not known yet who will take it, bounded. */
export class HeldBody {
  /** Undefined: not whole yet. Null: too large. */
  #body: Uint8Array | null | undefined;
  #taker: ((body: Uint8Array | null) => void) | null = null;

  constructor(res: HttpResponse, bytesMax: number) {
    readBody(res, bytesMax, (body) => {
      // The library takes the bytes back when this returns.
      this.#body = this.#taker === null && body !== null ? body.slice() : body;
      this.#taker?.(body);
    });
  }

  /** Like `readBody`, for a body that has perhaps come. */
  read(bytesMax: number, done: (body: Uint8Array | null) => void): void {
    const bounded = (body: Uint8Array | null): void =>
      done(body !== null && body.length > bytesMax ? null : body);
    if (this.#body === undefined) this.#taker = bounded;
    else bounded(this.#body);
  }
}

function appended(
  collected: Uint8Array | null,
  length: number,
  piece: Uint8Array,
  bytesMax: number,
): Uint8Array {
  let buffer = collected ?? new Uint8Array(Math.min(bytesMax, COLLECTED_BYTES_INITIAL));
  if (length + piece.length > buffer.length) {
    const grown = new Uint8Array(Math.min(bytesMax, Math.max(2 * buffer.length, length + piece.length)));
    grown.set(buffer.subarray(0, length));
    buffer = grown;
  }
  buffer.set(piece, length);
  return buffer;
}
