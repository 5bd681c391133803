import type { RingsBuffers, StreamHandle } from '#gapless/ring/rings.js';

/** Two streams: the first is there from the start, the second gets the memory that the first gives back as it grows. */
export const STREAMS = 2;
/** More seqs than one stream gives out in a round. */
export const SEQS_MAX = 1 << 16;

export type Role = 'appender' | 'committer' | 'reader' | 'unconfirmed reader' | 'floor-only reader';

/** What a worker is started with. */
export interface RingWorkerData {
  readonly role: Role;
  readonly index: number;
  readonly workers: number;
  readonly rings: RingsBuffers;
  /** One word: how many workers have come to the start of a round, counted over all rounds. */
  readonly start: SharedArrayBuffer;
  /** Per stream, by seq: the mark of the event that an appender was given that seq for. */
  readonly ledgers: SharedArrayBuffer;
  /** The same per stream as this reader saw it. */
  readonly seen: SharedArrayBuffer;
}

export interface RingOrder {
  readonly round: number;
  readonly seed: number;
  readonly streams: readonly StreamHandle[];
  readonly batches: number;
}

export type RingReport =
  | { readonly kind: 'half' }
  | {
      readonly kind: 'appended';
      readonly events: readonly number[];
      /** Rings that were given back because this appender needed their memory, so far. */
      readonly reclaimed: number;
      readonly problem: string | null;
    }
  | {
      readonly kind: 'read';
      readonly accepted: number;
      readonly discarded: number;
      readonly overtaken: number;
      readonly problem: string | null;
    };

/** The marks of one stream in a ledger, by seq. */
export function marksOf(ledger: SharedArrayBuffer, stream: number): Int32Array {
  return new Int32Array(ledger, 4 * SEQS_MAX * stream, SEQS_MAX);
}

export function createLedger(): SharedArrayBuffer {
  return new SharedArrayBuffer(4 * SEQS_MAX * STREAMS);
}
