/** Events that have no seqs yet, each as its SSE frame but for the `id` line: part i ends at `ends[i]` of `bytes`. */
export interface EventParts {
  readonly bytes: Uint8Array;
  readonly ends: Uint32Array;
}
