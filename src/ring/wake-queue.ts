/**
 * How an append on one thread becomes a drain on others: per edge a queue of the slots that have news,
 * each in it at most once (W1), and a word that the edge waits on without blocking its loop. With a durable log
 * there is one more queue, the log thread's: it is told of appends, and the edges of commits (I4).
 *
 * Hot path: an append to a stream without readers costs one atomic load.
 */

import { assert } from '../assert.js';
import * as layout from './layout.js';
import type { Rings } from './rings.js';
import { i32At } from './rings.js';

/** Reserves the queues of `edges` edges, and of a log thread where there is one, over `slots` stream slots. */
export function createWakes(edges: number, slots: number, logThreads: 0 | 1 = 0): SharedArrayBuffer {
  assert(edges >= 1 && edges <= layout.EDGES_MAX, 'wakes: one bit of a mask per edge');
  return new SharedArrayBuffer((edges + logThreads) * layout.edgeBlockBytes(queueCells(slots)));
}

function queueCells(slots: number): number {
  return 2 ** Math.ceil(Math.log2(slots + 1));
}

/** The log thread, where an edge is named. */
export const LOG_EDGE = layout.EDGES_MAX;

export class Wakes {
  readonly #rings: Rings;
  readonly #words: Int32Array;
  readonly #edges: number;
  readonly #blockWords: number;
  readonly #cellMask: number;

  constructor(buffer: SharedArrayBuffer, rings: Rings) {
    const cells = queueCells(rings.slotCount);
    this.#rings = rings;
    this.#words = new Int32Array(buffer);
    this.#blockWords = layout.edgeBlockBytes(cells) / 4;
    this.#edges = this.#words.length / this.#blockWords - (rings.durable ? 1 : 0);
    this.#cellMask = cells - 1;
  }

  /** Says that `edge` has readers on this slot from now on. Before the reader looks at positions (I8). */
  addInterest(slot: number, edge: number): void {
    Atomics.or(this.#rings.i32, i32At(slot, layout.INTEREST_MASK_OFFSET), 1 << edge);
  }

  removeInterest(slot: number, edge: number): void {
    Atomics.and(this.#rings.i32, i32At(slot, layout.INTEREST_MASK_OFFSET), ~(1 << edge));
  }

  /**
   * Queues the slot at every edge with readers on it, and wakes them but for `self`, the caller's own edge
   * (-1: the caller is no edge).
   * @returns whether the caller's own queue has the slot now and had not before: it must drain it.
   */
  announce(slot: number, self: number): boolean {
    const words = this.#rings.i32;
    const interest = Atomics.load(words, i32At(slot, layout.INTEREST_MASK_OFFSET));
    if (interest === 0) return false;
    const before = Atomics.or(words, i32At(slot, layout.DIRTY_MASK_OFFSET), interest);
    return this.tell(slot, interest & ~before, self);
  }

  /**
   * Queues the slot at those whose bits were just set in its `dirtyMask`, by `announce` or by an append (W1).
   * @returns as `announce`.
   */
  tell(slot: number, bits: number, self: number): boolean {
    let left = bits;
    let own = false;
    while (left !== 0) {
      const edge = 31 - Math.clz32(left);
      left &= ~(1 << edge);
      this.#push(edge, slot);
      if (edge === self) own = true;
      else this.#notify(edge);
    }
    return own;
  }

  /** Takes the next slot with news, or -1. Its bit stays set until `settle`. Only the edge itself. */
  take(edge: number): number {
    const block = this.#block(edge);
    const headAt = block + layout.QUEUE_HEAD_OFFSET / 4;
    const head = this.#words[headAt] as number;
    const slot = Atomics.exchange(this.#words, this.#cell(block, head), 0) - 1;
    if (slot < 0) return -1;
    this.#words[headAt] = (head + 1) | 0;
    return slot;
  }

  /**
   * Says that the edge has read all it saw. The edge MUST look at the stream once more afterwards: an
   * append that came just before found the bit set and did not queue the slot (W1).
   */
  settle(slot: number, edge: number): void {
    Atomics.and(this.#rings.i32, i32At(slot, layout.DIRTY_MASK_OFFSET), ~(1 << edge));
  }

  /** Value to hand to `wait`; read it before the queue is emptied. */
  ticket(edge: number): number {
    return Atomics.load(this.#words, this.#wakeWord(edge));
  }

  /** Resolves when another thread queues something after the ticket was read; null when one already has. */
  wait(edge: number, ticket: number): Promise<unknown> | null {
    const waiter = Atomics.waitAsync(this.#words, this.#wakeWord(edge), ticket);
    return waiter.async ? waiter.value : null;
  }

  #push(edge: number, slot: number): void {
    const block = this.#block(edge);
    const claimed = Atomics.add(this.#words, block + layout.QUEUE_TAIL_OFFSET / 4, 1);
    const before = Atomics.exchange(this.#words, this.#cell(block, claimed), slot + 1);
    assert(before === 0, 'W1: a wake queue never overflows');
  }

  #notify(edge: number): void {
    Atomics.add(this.#words, this.#wakeWord(edge), 1);
    Atomics.notify(this.#words, this.#wakeWord(edge));
  }

  #cell(block: number, position: number): number {
    return block + layout.QUEUE_CELLS_OFFSET / 4 + (position & this.#cellMask);
  }

  #wakeWord(edge: number): number {
    return this.#block(edge) + layout.WAKE_WORD_OFFSET / 4;
  }

  /** The log thread has the last bit and the last block. */
  #block(edge: number): number {
    assert(edge < this.#edges || edge === LOG_EDGE, 'wakes: interest comes from edges only');
    return Math.min(edge, this.#edges) * this.#blockWords;
  }
}
