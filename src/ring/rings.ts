/**
 * The shared memory of all streams, attached to by every thread: the slots and the arena, with typed
 * views made once. The rules of who may touch what are in layout.ts.
 */

import type { ArenaBuffers } from './arena.js';
import { Arena, createArena } from './arena.js';
import * as layout from './layout.js';

/** How much is remembered of who publishes exactly once (contract 3.4), and how long. */
export interface ProducerLimits {
  /** Entries of one stream, by kind of record. */
  readonly countMax: readonly [number, number];
  /** How long after its last publish one is remembered at least, milliseconds, by kind of record. */
  readonly ttlMs: readonly [number, number];
  /** Memory of all streams' tables. */
  readonly bytesMax: number;
}

/** What a thread needs to attach; sent as worker data. */
export interface RingsBuffers {
  readonly slots: SharedArrayBuffer;
  readonly arena: ArenaBuffers;
  /** Whether a durable log commits what is appended; if not, it is committed at once (I4). */
  readonly durable: boolean;
  readonly producers: ProducerLimits;
}

const NO_PRODUCERS: ProducerLimits = { countMax: [0, 0], ttlMs: [0, 0], bytesMax: 0 };

/**
 * Reserves the memory of `streamsMax` slots and of `memoryBytes` for their rings.
 * Untouched pages cost nothing.
 */
export function createRings(options: {
  streamsMax: number;
  memoryBytes: number;
  durable?: boolean;
  producers?: ProducerLimits;
}): RingsBuffers {
  return {
    durable: options.durable ?? false,
    producers: options.producers ?? NO_PRODUCERS,
    slots: new SharedArrayBuffer(options.streamsMax * layout.STREAM_SLOT_BYTES),
    arena: createArena(options.memoryBytes),
  };
}

/** A stream in shared memory: its slot and the generation that it had when the handle was made (S4). */
export interface StreamHandle {
  readonly slot: number;
  readonly generation: number;
  readonly epoch: string;
}

export class Rings {
  readonly i32: Int32Array;
  readonly f64: Float64Array;
  readonly u8: Uint8Array;
  readonly arena: Arena;
  readonly slotCount: number;
  readonly durable: boolean;
  readonly producers: ProducerLimits;

  constructor(buffers: RingsBuffers) {
    this.durable = buffers.durable;
    this.producers = buffers.producers;
    this.i32 = new Int32Array(buffers.slots);
    this.f64 = new Float64Array(buffers.slots);
    this.u8 = new Uint8Array(buffers.slots);
    this.arena = new Arena(buffers.arena);
    this.slotCount = buffers.slots.byteLength / layout.STREAM_SLOT_BYTES;
  }
}

/** Index of an i32 field in `Rings.i32`. */
export function i32At(slot: number, offset: number): number {
  return (slot * layout.STREAM_SLOT_BYTES + offset) / 4;
}

/** Index of an f64 field in `Rings.f64`. */
export function f64At(slot: number, offset: number): number {
  return (slot * layout.STREAM_SLOT_BYTES + offset) / 8;
}
