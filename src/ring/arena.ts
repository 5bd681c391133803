/**
 * One memory budget, reserved at start and carved into power-of-two blocks by a buddy allocator whose
 * lists are shared too, so that any thread can grow a ring. Pages cost nothing until they are touched.
 *
 * Blocks are named by their first unit, counted over all segments; a block never crosses a segment.
 * Cold path: a ring is allocated when its stream is first written and each time that it doubles.
 */

import { assert } from '../assert.js';
import * as layout from './layout.js';
import { lock, unlock } from './mutex.js';

const FREE = 0x80;
const TAKEN = 0x40;
const NONE = -1;
const ORDER_MASK = 0x3f;

/** What a thread needs to attach; sent as worker data. */
export interface ArenaBuffers {
  readonly segments: SharedArrayBuffer[];
  readonly allocator: SharedArrayBuffer;
}

/**
 * Reserves the budget.
 * @param memoryBytes rounded down to whole units; at least one unit.
 */
export function createArena(memoryBytes: number): ArenaBuffers {
  const units = Math.floor(memoryBytes / layout.UNIT_BYTES);
  assert(units > 0, 'arena: the budget holds at least one unit');
  const segments: SharedArrayBuffer[] = [];
  for (let left = units * layout.UNIT_BYTES; left > 0; left -= layout.SEGMENT_BYTES_MAX) {
    segments.push(new SharedArrayBuffer(Math.min(left, layout.SEGMENT_BYTES_MAX)));
  }
  const buffers = { segments, allocator: new SharedArrayBuffer(layout.allocatorBytes(units)) };
  new Arena(buffers).format();
  return buffers;
}

export class Arena {
  /** One byte view a segment; rings index into it directly on the hot path. */
  readonly bytes: readonly Uint8Array[];
  /** The same memory as 32-bit words, for index rings. */
  readonly words: readonly Int32Array[];
  /** And as doubles, for producer tables. */
  readonly doubles: readonly Float64Array[];
  readonly capacityBytes: number;

  readonly #units: number;
  readonly #control: Int32Array;
  readonly #totals: Float64Array;
  readonly #next: Int32Array;
  readonly #previous: Int32Array;
  readonly #state: Uint8Array;

  constructor(buffers: ArenaBuffers) {
    this.bytes = buffers.segments.map((segment) => new Uint8Array(segment));
    this.words = buffers.segments.map((segment) => new Int32Array(segment));
    this.doubles = buffers.segments.map((segment) => new Float64Array(segment));
    this.capacityBytes = buffers.segments.reduce((sum, segment) => sum + segment.byteLength, 0);
    this.#units = this.capacityBytes / layout.UNIT_BYTES;
    this.#control = new Int32Array(buffers.allocator, 0, layout.NEXT_OFFSET / 4);
    this.#totals = new Float64Array(buffers.allocator, 0, layout.FREE_HEADS_OFFSET / 8);
    this.#next = new Int32Array(buffers.allocator, layout.NEXT_OFFSET, this.#units);
    this.#previous = new Int32Array(buffers.allocator, layout.previousOffset(this.#units), this.#units);
    this.#state = new Uint8Array(buffers.allocator, layout.unitStateOffset(this.#units), this.#units);
  }

  /** Cuts each segment into its largest aligned blocks. Only the creator calls this, before sharing. */
  format(): void {
    this.#control.fill(
      NONE,
      layout.FREE_HEADS_OFFSET / 4,
      layout.FREE_HEADS_OFFSET / 4 + layout.FREE_HEADS_LENGTH,
    );
    const unitsPerSegment = layout.SEGMENT_BYTES_MAX / layout.UNIT_BYTES;
    let unit = 0;
    while (unit < this.#units) {
      const left = Math.min(this.#units - unit, unitsPerSegment - (unit % unitsPerSegment));
      const order = 31 - Math.clz32(left);
      this.#push(unit, order);
      unit += 2 ** order;
    }
  }

  /**
   * Takes a block of 2^order bytes.
   * @param owner slot of the stream that it is for; -1: it is nobody's, and is not taken back.
   * @returns its first unit, or -1 when no block of that size is free.
   */
  allocate(order: number, owner = NONE): number {
    assert(order >= layout.UNIT_ORDER && order <= layout.RING_ORDER_MAX, 'arena: order within bounds');
    lock(this.#control, layout.ALLOCATOR_LOCK_OFFSET / 4);
    const unit = this.#take(order - layout.UNIT_ORDER);
    if (unit === NONE) this.#add(layout.ALLOCATOR_REFUSALS_OFFSET, 1);
    else {
      this.#next[unit] = owner;
      this.#add(layout.ALLOCATOR_USED_OFFSET, 2 ** order);
    }
    unlock(this.#control, layout.ALLOCATOR_LOCK_OFFSET / 4);
    return unit;
  }

  /** Gives a block back and merges it with its free buddies. */
  release(unit: number, order: number): void {
    lock(this.#control, layout.ALLOCATOR_LOCK_OFFSET / 4);
    const unitOrder = order - layout.UNIT_ORDER;
    assert(
      this.#state[unit] === (TAKEN | unitOrder),
      'arena: only a taken block is released, with its own order',
    );
    this.#merge(unit, unitOrder);
    this.#add(layout.ALLOCATOR_USED_OFFSET, -(2 ** order));
    unlock(this.#control, layout.ALLOCATOR_LOCK_OFFSET / 4);
  }

  /**
   * Takes a block for a producer table, as long as all of them together stay within `bytesMax`.
   * @returns its first unit, or -1; `isOverBound` says whether the bound was in the way.
   */
  allocateTable(order: number, bytesMax: number): { unit: number; isOverBound: boolean } {
    const units = 2 ** (order - layout.UNIT_ORDER);
    const at = layout.ALLOCATOR_PRODUCER_UNITS_OFFSET / 4;
    const taken = Atomics.add(this.#control, at, units);
    const isOverBound = (taken + units) * layout.UNIT_BYTES > bytesMax;
    const unit = isOverBound ? NONE : this.allocate(order);
    if (unit === NONE) Atomics.sub(this.#control, at, units);
    return { unit, isOverBound };
  }

  releaseTable(unit: number, order: number): void {
    this.release(unit, order);
    Atomics.sub(this.#control, layout.ALLOCATOR_PRODUCER_UNITS_OFFSET / 4, 2 ** (order - layout.UNIT_ORDER));
  }

  /** Bytes that producer tables occupy. */
  get tableBytes(): number {
    return Atomics.load(this.#control, layout.ALLOCATOR_PRODUCER_UNITS_OFFSET / 4) * layout.UNIT_BYTES;
  }

  /**
   * Who has memory in the next region that a block of 2^order bytes could be made of: a hand goes round the arena, so
   * that in time it comes to all.
   * @returns their slots, -1 among them where it is nobody's; null when nothing is taken anywhere, or no region is so large.
   */
  nextTaken(order: number): number[] | null {
    const size = 2 ** (order - layout.UNIT_ORDER);
    lock(this.#control, layout.ALLOCATOR_LOCK_OFFSET / 4);
    let owners: number[] = [];
    let unit = this.#control[layout.ALLOCATOR_HAND_OFFSET / 4] as number;
    // Twice round at most: what was skipped at the first start lies behind it.
    for (let rounds = 0; owners.length === 0 && rounds < 2; ) {
      unit = Math.ceil(unit / size) * size;
      if (unit + size > this.#units) {
        unit = 0;
        rounds++;
        continue;
      }
      const { start, end } = this.#blockAt(unit);
      if (this.#isTaken(start) || end < unit + size) owners = this.#ownersIn(start, unit + size);
      unit = Math.max(end, unit + size);
    }
    this.#control[layout.ALLOCATOR_HAND_OFFSET / 4] = unit;
    unlock(this.#control, layout.ALLOCATOR_LOCK_OFFSET / 4);
    return owners.length === 0 ? null : owners;
  }

  /** Bytes in use and allocations refused so far. */
  usage(): { usedBytes: number; refusals: number } {
    lock(this.#control, layout.ALLOCATOR_LOCK_OFFSET / 4);
    const usedBytes = this.#totals[layout.ALLOCATOR_USED_OFFSET / 8] as number;
    const refusals = this.#totals[layout.ALLOCATOR_REFUSALS_OFFSET / 8] as number;
    unlock(this.#control, layout.ALLOCATOR_LOCK_OFFSET / 4);
    return { usedBytes, refusals };
  }

  /** The block that a unit is in. */
  #blockAt(unit: number): { start: number; end: number } {
    let start = unit;
    for (let order = 1; this.#state[start] === 0; order++) start = unit - (unit % 2 ** order);
    return { start, end: start + 2 ** ((this.#state[start] as number) & ORDER_MASK) };
  }

  #isTaken(start: number): boolean {
    return ((this.#state[start] as number) & TAKEN) !== 0;
  }

  /** Owners of the taken blocks from the one that begins at `start` on. */
  #ownersIn(start: number, end: number): number[] {
    const owners = new Set<number>();
    for (let unit = start; unit < end; unit = this.#blockAt(unit).end) {
      if (this.#isTaken(unit)) owners.add(this.#next[unit] as number);
    }
    return [...owners];
  }

  #add(offset: number, amount: number): void {
    this.#totals[offset / 8] = (this.#totals[offset / 8] as number) + amount;
  }

  #take(wanted: number): number {
    let order = wanted;
    while (order < layout.FREE_HEADS_LENGTH && this.#head(order) === NONE) order++;
    if (order === layout.FREE_HEADS_LENGTH) return NONE;
    const unit = this.#head(order);
    this.#unlink(unit, order);
    while (order > wanted) {
      order--;
      this.#push(unit + 2 ** order, order);
    }
    this.#state[unit] = TAKEN | wanted;
    return unit;
  }

  #merge(unit: number, order: number): void {
    const unitsPerSegment = layout.SEGMENT_BYTES_MAX / layout.UNIT_BYTES;
    let first = unit;
    let size = order;
    while (2 ** size < unitsPerSegment) {
      const buddy = first ^ (2 ** size);
      if (buddy + 2 ** size > this.#units || this.#state[buddy] !== (FREE | size)) break;
      this.#unlink(buddy, size);
      this.#state[Math.max(first, buddy)] = 0;
      first = Math.min(first, buddy);
      size++;
    }
    this.#push(first, size);
  }

  #head(order: number): number {
    return this.#control[layout.FREE_HEADS_OFFSET / 4 + order] as number;
  }

  #push(unit: number, order: number): void {
    const old = this.#head(order);
    this.#next[unit] = old;
    this.#previous[unit] = NONE;
    if (old !== NONE) this.#previous[old] = unit;
    this.#control[layout.FREE_HEADS_OFFSET / 4 + order] = unit;
    this.#state[unit] = FREE | order;
  }

  #unlink(unit: number, order: number): void {
    const next = this.#next[unit] as number;
    const previous = this.#previous[unit] as number;
    if (previous === NONE) this.#control[layout.FREE_HEADS_OFFSET / 4 + order] = next;
    else this.#next[previous] = next;
    if (next !== NONE) this.#previous[next] = previous;
  }
}
