import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { blockSpanMsMax, type Kept, retentionFloor } from '#gapless/storage/retention-floor.js';

/** Ten blocks of 10 events and 1000 bytes each, a second apart. */
const STARTS = Array.from({ length: 10 }, (_, index) => ({
  firstSeq: 10 * index + 1,
  position: 1000 * index,
  openedAtMs: 1000 * index,
}));

function floorOf(
  retention: { events?: number; bytes?: number; ageMs?: number },
  { floor = 1, nowMs = 0 }: { floor?: number; nowMs?: number } = {},
): number {
  const index = Math.floor((floor - 1) / 10);
  const block = STARTS[index] ?? assert.fail();
  const kept: Kept = { floor, block, head: 100, endPosition: 10_000, writtenAtMs: 9500 };
  return retentionFloor({ events: 0, bytes: 0, ageMs: 0, ...retention }, kept, nowMs, () =>
    STARTS.slice(index + 1),
  );
}

describe('the floor that retention asks for', () => {
  it('stays where there is no limit, and where no more than twice the limit is kept', () => {
    assert.equal(floorOf({}), 1);
    assert.equal(floorOf({ events: 50, bytes: 5000 }), 1);
    assert.equal(floorOf({ ageMs: 5000 }, { nowMs: 10_000 }), 1);
  });

  it('is exact in events, also inside of a block', () => {
    assert.equal(floorOf({ events: 49 }), 52);
    assert.equal(floorOf({ events: 3 }), 98);
    assert.equal(floorOf({ events: 3 }, { floor: 95 }), 95);
    assert.equal(floorOf({ events: 3 }, { floor: 94 }), 98);
  });

  it('leaves at least the bytes of the limit, in whole blocks', () => {
    assert.equal(floorOf({ bytes: 4999 }), 51);
    assert.equal(floorOf({ bytes: 4001 }), 51);
    assert.equal(floorOf({ bytes: 4000 }), 61);
    assert.equal(floorOf({ bytes: 1 }), 91);
    assert.equal(floorOf({ bytes: 4000 }, { floor: 25 }), 25);
    assert.equal(floorOf({ bytes: 3999 }, { floor: 15 }), 61);
  });

  it('leaves all events that are younger than the limit, and none where all are older', () => {
    // The second block was opened at 1000: what is in the first is that old at least.
    assert.equal(floorOf({ ageMs: 4000 }, { nowMs: 8001 }), 41);
    assert.equal(floorOf({ ageMs: 4000 }, { nowMs: 7999 }), 1);
    assert.equal(floorOf({ ageMs: 4000 }, { nowMs: 13_499 }), 91);
    assert.equal(floorOf({ ageMs: 4000 }, { nowMs: 13_500 }), 101);
  });

  it('is the highest where several limits are passed', () => {
    assert.equal(floorOf({ events: 20, bytes: 4000 }), 81);
    assert.equal(floorOf({ events: 48, bytes: 1000 }), 91);
    assert.equal(floorOf({ bytes: 4000, ageMs: 1000 }, { nowMs: 9000 }), 81);
  });

  it('moves a bounded way at once where very many blocks are to go', () => {
    const starts = Array.from({ length: 5000 }, (_, index) => ({
      firstSeq: index + 1,
      position: index,
      openedAtMs: 0,
    }));
    const kept = {
      floor: 1,
      block: starts[0] ?? assert.fail(),
      head: 5000,
      endPosition: 5000,
      writtenAtMs: 0,
    };
    const floor = retentionFloor({ events: 0, bytes: 10, ageMs: 0 }, kept, 0, () => starts.slice(1));
    assert.ok(floor > 1000 && floor < 2000);
  });

  it('is helped by blocks that do not span more than half the age', () => {
    assert.equal(blockSpanMsMax({ events: 0, bytes: 0, ageMs: 0 }), Number.POSITIVE_INFINITY);
    assert.equal(blockSpanMsMax({ events: 0, bytes: 0, ageMs: 3000 }), 1500);
  });
});
