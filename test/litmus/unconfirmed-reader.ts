import * as layout from '#gapless/ring/layout.js';
import { lock, unlock } from '#gapless/ring/mutex.js';
import { type FrameRun, READ_CAUGHT_UP, READ_GONE, READ_OK, READ_OVERTAKEN } from '#gapless/ring/read.js';
import { byteOffsetOf, floorSeq, lastWithin, positionOf, segmentOf } from '#gapless/ring/ring-memory.js';
import { f64At, i32At, type Rings, type StreamHandle } from '#gapless/ring/rings.js';

/**
 * A ring reader with a planted mistake: it does what the real one does, but takes its copy for good without confirming
 * that nothing was overwritten meanwhile, or confirms the floor and not that the ring is still where it was. The
 * litmus must catch it, or it could not catch a real one.
 */
export class UnconfirmedReader {
  floorSeq = 0;
  committedSeq = 0;
  closed = false;
  discarded = 0;

  readonly #rings: Rings;
  readonly #confirmsFloor: boolean;
  #position = 0;

  constructor(rings: Rings, confirmsFloor: boolean) {
    this.#rings = rings;
    this.#confirmsFloor = confirmsFloor;
  }

  read(stream: StreamHandle, afterSeq: number, bytesMax: number, run: FrameRun): number {
    for (;;) {
      const found = this.#read(stream, afterSeq, bytesMax, run);
      if (found !== READ_OK || !this.#confirmsFloor || this.#isAboveFloor(stream.slot)) return found;
      this.discarded++;
    }
  }

  #isAboveFloor(slot: number): boolean {
    const floor = Atomics.add(this.#rings.i32, i32At(slot, layout.FLOOR_POSITION_OFFSET), 0);
    return ((this.#position - floor) | 0) >= 0;
  }

  #read(stream: StreamHandle, afterSeq: number, bytesMax: number, run: FrameRun): number {
    const rings = this.#rings;
    const { slot } = stream;
    lock(rings.i32, i32At(slot, layout.LOCK_OFFSET));
    const found = this.#look(stream, afterSeq);
    let unit = 0;
    let order = 0;
    if (found === READ_OK) {
      run.firstSeq = afterSeq + 1;
      run.lastSeq = lastWithin(rings, slot, run.firstSeq, this.committedSeq, bytesMax);
      this.#position = positionOf(rings, slot, run.firstSeq);
      run.reserve((positionOf(rings, slot, run.lastSeq + 1) - this.#position) | 0);
      unit = rings.i32[i32At(slot, layout.DATA_UNIT_OFFSET)] as number;
      order = rings.i32[i32At(slot, layout.DATA_ORDER_OFFSET)] as number;
    }
    unlock(rings.i32, i32At(slot, layout.LOCK_OFFSET));
    if (found !== READ_OK) return found;
    const ring = rings.arena.bytes[segmentOf(unit)] as Uint8Array;
    const base = byteOffsetOf(unit);
    const at = this.#position & (2 ** order - 1);
    const first = Math.min(run.frames.length, 2 ** order - at);
    run.frames.set(ring.subarray(base + at, base + at + first));
    if (first < run.frames.length)
      run.frames.set(ring.subarray(base, base + run.frames.length - first), first);
    return READ_OK;
  }

  #look(stream: StreamHandle, afterSeq: number): number {
    const rings = this.#rings;
    const { slot } = stream;
    const generation = Atomics.load(rings.i32, i32At(slot, layout.GENERATION_OFFSET));
    if (generation !== stream.generation) return READ_GONE;
    this.floorSeq = floorSeq(rings, slot);
    this.committedSeq = rings.f64[f64At(slot, layout.COMMITTED_SEQ_OFFSET)] as number;
    this.closed = rings.i32[i32At(slot, layout.STATE_OFFSET)] === layout.STREAM_CLOSED;
    if (afterSeq === this.committedSeq) return READ_CAUGHT_UP;
    return afterSeq + 1 < this.floorSeq ? READ_OVERTAKEN : READ_OK;
  }
}
