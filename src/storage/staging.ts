/**
 * Memory for frames that wait for their commit. The same over and over: what each commit allocated anew would have to be
 * collected anew, and a collector at work costs more than the copy.
 */

const CHUNK_BYTES = 1024 * 1024;
/** Kept from one commit to the next; what a larger commit took beyond that goes with it. */
const KEPT_CHUNKS_MAX = 4;

/** Single user: the writer of a log. */
export class Staging {
  #chunks: Uint8Array[] = [];
  /** The chunk that is being filled, and up to where. */
  #current = 0;
  #used = 0;

  /** A copy that stands until `clear`. */
  copy(bytes: Uint8Array): Uint8Array {
    if (bytes.length > CHUNK_BYTES) return new Uint8Array(bytes);
    if (this.#used + bytes.length > CHUNK_BYTES) {
      this.#current++;
      this.#used = 0;
    }
    let chunk = this.#chunks[this.#current];
    if (chunk === undefined) {
      chunk = new Uint8Array(CHUNK_BYTES);
      this.#chunks.push(chunk);
    }
    const copy = chunk.subarray(this.#used, this.#used + bytes.length);
    copy.set(bytes);
    this.#used += bytes.length;
    return copy;
  }

  /** Nothing that was copied is needed any more. */
  clear(): void {
    this.#chunks.length = Math.min(this.#chunks.length, KEPT_CHUNKS_MAX);
    this.#current = 0;
    this.#used = 0;
  }
}
