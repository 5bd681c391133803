/**
 * The committed blocks of all living streams: how much they hold, and which stream has the oldest. A heap of the
 * streams that have more than their last block, by the time at which the block with their floor was opened.
 *
 * Single user: the writer.
 */

import { assert } from '../../assert.js';
import type { LogId } from '../event-log.js';
import type { BlockStart } from './store-keys.js';
import { keptBytes, type StreamTail } from './stream-tail.js';

export class OldestBlocks {
  readonly #heap: StreamTail[] = [];
  #bytes = 0;

  /** As `keptBytes` says of each stream. */
  get bytes(): number {
    return this.#bytes;
  }

  /** The stream with the oldest block of those that can go; undefined when there are only last blocks. */
  get oldest(): StreamTail | undefined {
    return this.#heap[0];
  }

  /**
   * The floor of the oldest stream when its blocks go, as far as they are the oldest of all: not its last one, and no
   * more than are wanted.
   *
   * @param blocksAfter the starts of a stream's blocks after one, in order.
   * @returns with it how many blocks go, at least one.
   */
  passOldest(
    most: { bytes: number; blocks: number },
    blocksAfter: (id: LogId, block: BlockStart) => Iterable<BlockStart>,
  ): { floor: number; blocks: number } {
    const { id, floorBlock, last } = this.oldest ?? {};
    assert(id !== undefined && floorBlock && last, 'a stream is listed for the blocks before its last one');
    const othersOpenedAtMs = Math.min(openedAtMs(this.#heap[1]), openedAtMs(this.#heap[2]));
    let floor = floorBlock.firstSeq;
    let blocks = 0;
    for (const next of blocksAfter(id, floorBlock)) {
      floor = next.firstSeq;
      blocks++;
      const isEnough = next.position - floorBlock.position >= most.bytes || blocks >= most.blocks;
      if (isEnough || floor >= last.firstSeq || next.openedAtMs > othersOpenedAtMs) break;
    }
    assert(floor > floorBlock.firstSeq, 'after the block of a floor comes another, or it is the last');
    return { floor, blocks };
  }

  /** To be called whenever a stream's floor or its last block has changed. */
  update(tail: StreamTail): void {
    this.#count(tail, keptBytes(tail));
    const { floorBlock, last } = tail;
    const hasOlder = floorBlock !== null && last !== null && floorBlock.firstSeq < last.firstSeq;
    if (!hasOlder) return this.#takeOut(tail);
    if (tail.heapIndex < 0) tail.heapIndex = this.#heap.push(tail) - 1;
    this.#rise(tail);
    this.#sink(tail);
  }

  remove(tail: StreamTail): void {
    this.#count(tail, 0);
    this.#takeOut(tail);
  }

  #count(tail: StreamTail, bytes: number): void {
    this.#bytes += bytes - tail.countedBytes;
    tail.countedBytes = bytes;
  }

  #takeOut(tail: StreamTail): void {
    const index = tail.heapIndex;
    if (index < 0) return;
    tail.heapIndex = -1;
    const last = this.#heap.pop() as StreamTail;
    if (last === tail) return;
    this.#put(last, index);
    this.#rise(last);
    this.#sink(last);
  }

  #rise(tail: StreamTail): void {
    while (tail.heapIndex > 0) {
      const above = this.#heap[(tail.heapIndex - 1) >> 1] as StreamTail;
      if (openedAtMs(above) <= openedAtMs(tail)) return;
      this.#swap(tail, above);
    }
  }

  #sink(tail: StreamTail): void {
    for (;;) {
      const left = this.#heap[2 * tail.heapIndex + 1];
      const right = this.#heap[2 * tail.heapIndex + 2];
      const below = openedAtMs(right) < openedAtMs(left) ? right : left;
      if (below === undefined || openedAtMs(below) >= openedAtMs(tail)) return;
      this.#swap(tail, below);
    }
  }

  #swap(a: StreamTail, b: StreamTail): void {
    const index = a.heapIndex;
    this.#put(a, b.heapIndex);
    this.#put(b, index);
  }

  #put(tail: StreamTail, index: number): void {
    this.#heap[index] = tail;
    tail.heapIndex = index;
  }
}

function openedAtMs(tail: StreamTail | undefined): number {
  return tail?.floorBlock?.openedAtMs ?? Number.POSITIVE_INFINITY;
}
