import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { InvariantError } from '#gapless/assert.js';
import { Arena, type ArenaBuffers, createArena } from '#gapless/ring/arena.js';

const UNIT_BYTES = 1024;
const UNIT_ORDER = 10;
const SEGMENT_UNITS = 2 ** 20;

interface Block {
  readonly unit: number;
  readonly order: number;
  readonly owner: number;
}

/** The arena as a row of units, each free or taken: what a buddy allocator that merges at once can give. */
class NaiveArena {
  readonly taken: Block[] = [];
  refusals = 0;
  readonly #units: number;

  constructor(units: number) {
    this.#units = units;
  }

  get usedBytes(): number {
    return this.taken.reduce((sum, { order }) => sum + 2 ** order, 0);
  }

  isFree(unit: number, order: number): boolean {
    const end = unit + unitsOf(order);
    if (unit < 0 || end > this.#units || unit % unitsOf(order) !== 0) return false;
    return this.taken.every((block) => end <= block.unit || block.unit + unitsOf(block.order) <= unit);
  }

  /** Owners of the blocks that are, in whole or in part, in the region from `unit` on. */
  ownersIn(unit: number, order: number): number[] {
    const end = unit + unitsOf(order);
    const taken = this.taken.filter((block) => block.unit < end && block.unit + unitsOf(block.order) > unit);
    return [...new Set(taken.map(({ owner }) => owner))].sort((a, b) => a - b);
  }

  hasRoom(order: number): boolean {
    for (let unit = 0; unit < this.#units; unit += unitsOf(order)) {
      if (this.isFree(unit, order)) return true;
    }
    return false;
  }
}

function unitsOf(order: number): number {
  return 2 ** (order - UNIT_ORDER);
}

/** Takes a block from the arena and holds the answer against the model. */
function allocate(arena: Arena, model: NaiveArena, order: number, owner = -1): void {
  const unit = arena.allocate(order, owner);
  if (!model.hasRoom(order)) {
    assert.equal(unit, -1, 'an arena without room says so');
    model.refusals++;
    return;
  }
  assert.ok(
    model.isFree(unit, order),
    `a block of order ${order} at ${unit} is aligned, inside, and nobody's`,
  );
  model.taken.push({ unit, order, owner });
}

/** The blocks that a fresh arena consists of: the largest aligned ones, from the left. */
function wholeBlocks(units: number): number[] {
  const orders: number[] = [];
  for (let left = units; left > 0; ) {
    const order = Math.floor(Math.log2(left));
    orders.push(order + UNIT_ORDER);
    left -= 2 ** order;
  }
  return orders;
}

const orders = fc.integer({ min: UNIT_ORDER, max: UNIT_ORDER + 7 });
const steps = fc.array(
  fc.oneof(
    fc.record({ what: fc.constant('allocate' as const), order: orders, view: fc.nat(1) }),
    fc.record({ what: fc.constant('release' as const), pick: fc.nat(), view: fc.nat(1) }),
  ),
  { maxLength: 200, size: 'max' },
);
const memoryBytes = fc.integer({ min: UNIT_BYTES, max: 100 * UNIT_BYTES });

test('blocks never overlap, are aligned and inside, and are refused only when none is free', () => {
  fc.assert(
    fc.property(memoryBytes, steps, (bytes, drawn) => {
      const units = Math.floor(bytes / UNIT_BYTES);
      const buffers = createArena(bytes);
      // Every thread has its own view, and whoever frees need not be who allocated.
      const views = [new Arena(buffers), new Arena(buffers)];
      const model = new NaiveArena(units);
      for (const step of drawn) {
        const arena = views[step.view] as Arena;
        if (step.what === 'allocate') {
          allocate(arena, model, step.order);
        } else if (model.taken.length > 0) {
          const [block] = model.taken.splice(step.pick % model.taken.length, 1) as [Block];
          arena.release(block.unit, block.order);
        }
        assert.deepEqual(arena.usage(), { usedBytes: model.usedBytes, refusals: model.refusals });
      }
      for (const { unit, order } of model.taken.splice(0)) (views[0] as Arena).release(unit, order);
      assertWhole(buffers, model.refusals);
    }),
    { numRuns: 1000 },
  );
});

test('whoever looks for memory to take back comes to every region that has some, and is told all of its owners', () => {
  fc.assert(
    fc.property(memoryBytes, steps, orders, (bytes, drawn, order) => {
      const units = Math.floor(bytes / UNIT_BYTES);
      const arena = new Arena(createArena(bytes));
      const model = new NaiveArena(units);
      for (const [owner, step] of drawn.entries()) {
        if (step.what === 'allocate') {
          allocate(arena, model, step.order, owner);
        } else if (model.taken.length > 0) {
          const [block] = model.taken.splice(step.pick % model.taken.length, 1) as [Block];
          arena.release(block.unit, block.order);
        }
      }
      const regions: string[] = [];
      for (let unit = 0; unit + unitsOf(order) <= units; unit += unitsOf(order)) {
        const owners = model.ownersIn(unit, order);
        if (owners.length > 0) regions.push(owners.join());
      }
      const found: string[] = [];
      while (found.length < regions.length) {
        const owners = arena.nextTaken(order) ?? assert.fail('there is memory to take back');
        found.push(owners.sort((a, b) => a - b).join());
      }
      // A block that is larger than a region is found once, and not for each region that it covers.
      for (const owners of regions) assert.ok(found.includes(owners), `nobody came to ${owners}`);
      for (const owners of found) assert.ok(regions.includes(owners), `${owners} have no such region`);
      if (regions.length === 0) assert.equal(arena.nextTaken(order), null);
    }),
    { numRuns: 500 },
  );
});

/** With everything back, the largest blocks of a fresh arena can be taken again, and nothing beside them. */
function assertWhole(buffers: ArenaBuffers, refusals: number): void {
  const arena = new Arena(buffers);
  const units = arena.capacityBytes / UNIT_BYTES;
  const model = new NaiveArena(units);
  model.refusals = refusals;
  assert.deepEqual(arena.usage(), { usedBytes: 0, refusals });
  for (const order of wholeBlocks(units)) allocate(arena, model, order);
  assert.deepEqual(arena.usage(), { usedBytes: arena.capacityBytes, refusals });
  allocate(arena, model, UNIT_ORDER);
  assert.deepEqual(arena.usage(), { usedBytes: arena.capacityBytes, refusals: refusals + 1 });
}

test('a budget that is no power of two is used to its last unit', () => {
  for (let units = 1; units <= 67; units++) {
    const buffers = createArena(units * UNIT_BYTES + (units % UNIT_BYTES));
    assert.equal(new Arena(buffers).capacityBytes, units * UNIT_BYTES);
    assertWhole(buffers, 0);
  }
});

test('a full arena is full of single units, and they merge back in any order', () => {
  fc.assert(
    fc.property(fc.integer({ min: 1, max: 70 }), fc.infiniteStream(fc.nat()), (units, picks) => {
      const buffers = createArena(units * UNIT_BYTES);
      const arena = new Arena(buffers);
      const model = new NaiveArena(units);
      for (let i = 0; i <= units; i++) allocate(arena, model, UNIT_ORDER);
      assert.equal(model.refusals, 1);
      while (model.taken.length > 0) {
        const pick = (picks.next().value as number) % model.taken.length;
        const [block] = model.taken.splice(pick, 1) as [Block];
        arena.release(block.unit, block.order);
      }
      assertWhole(buffers, 1);
    }),
    { numRuns: 200 },
  );
});

test('what is released must be a block that is taken, with its own order', () => {
  const broken: readonly Omit<Block, 'owner'>[] = [
    { unit: 0, order: 11 },
    { unit: 0, order: 13 },
    { unit: 1, order: 12 },
    { unit: 4, order: 12 },
  ];
  for (const { unit, order } of broken) {
    const arena = new Arena(createArena(16 * UNIT_BYTES));
    assert.equal(arena.allocate(12), 0);
    assert.throws(() => arena.release(unit, order), InvariantError);
  }
});

test('a block is released once, whatever it has merged into since', () => {
  for (const [first, again] of [
    [0, 0],
    [0, 1],
    [1, 0],
    [1, 1],
  ] as const) {
    const arena = new Arena(createArena(2 * UNIT_BYTES));
    assert.deepEqual([arena.allocate(10), arena.allocate(10)], [0, 1]);
    arena.release(first, 10);
    arena.release(1 - first, 10);
    assert.throws(() => arena.release(again, 10), InvariantError);
  }
});

test('a budget above one segment is cut so that no block crosses from one segment to the next', () => {
  // Reserved, not touched: only the first and last pages of it are ever backed by memory.
  const tailUnits = 5;
  const arena = new Arena(createArena((SEGMENT_UNITS + tailUnits) * UNIT_BYTES + 1));
  assert.deepEqual(
    arena.bytes.map(({ length }) => length),
    [SEGMENT_UNITS * UNIT_BYTES, tailUnits * UNIT_BYTES],
  );
  assert.equal(arena.allocate(30), 0, 'the first segment as one block');
  assert.equal(arena.allocate(13), -1, 'the tail has no eight units');
  assert.equal(arena.allocate(12), SEGMENT_UNITS);
  assert.equal(arena.allocate(10), SEGMENT_UNITS + 4);
  assert.equal(arena.allocate(10), -1);
  arena.release(SEGMENT_UNITS + 4, 10);
  arena.release(SEGMENT_UNITS, 12);
  arena.release(0, 30);
  assert.equal(arena.allocate(30), 0, 'a whole segment does not merge with the tail');
  assert.deepEqual(arena.usage(), { usedBytes: 2 ** 30, refusals: 2 });
});
