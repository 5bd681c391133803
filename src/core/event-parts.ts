/** Events that have no seqs yet, each as its SSE frame but for the `id` line: part i ends at `ends[i]` of `bytes`. */
export interface EventParts {
  readonly bytes: Uint8Array;
  readonly ends: Uint32Array;
}

const END_BYTES = 4;

/** What parts take in an entry of a replicated log: their own bytes, and where each of them ends. */
export function storedBytes({ bytes, ends }: EventParts): number {
  return bytes.length + END_BYTES * ends.length;
}
