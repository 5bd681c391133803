import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import fc from 'fast-check';
import { endOfFrame, framesWithin, skipFrames } from '#gapless/core/frame-scan.js';
import { collectRun } from '#gapless/storage/lmdb/collect-run.js';
import {
  BLOCK_BYTES_MAX,
  type BlockShape,
  MERGE_BYTES_MAX,
  type PackedBlock,
  packRuns,
  type TimedRun,
} from '#gapless/storage/lmdb/pack-runs.js';
import { frameOf, runOf, sizesOf } from './storage-stage.js';

const FOR_EVER = Number.POSITIVE_INFINITY;

function timedRuns(firstSeq: number, runs: readonly (readonly number[])[], stepMs = 0): TimedRun[] {
  let seq = firstSeq;
  return runs.map((sizes, index) => {
    const run = { ...runOf(1, seq, sizes), writtenAtMs: index * stepMs };
    seq += sizes.length;
    return run;
  });
}

/** What all blocks have to be, whatever came: contiguous in events, bytes and content. */
function assertContinues(
  last: BlockShape | null,
  runs: readonly TimedRun[],
  blocks: readonly PackedBlock[],
): void {
  let before = last;
  for (const [index, block] of blocks.entries()) {
    const bytes = Buffer.concat(block.parts).length;
    if (block.mergesLast) {
      assert.ok(before !== null && index === 0);
      assert.deepEqual(
        [block.firstSeq, block.position, block.openedAtMs],
        [before.firstSeq, before.position, before.openedAtMs],
      );
      assert.equal(block.framesBytes, before.framesBytes + bytes);
    } else {
      assert.equal(block.firstSeq, before === null ? 1 : before.lastSeq + 1);
      assert.equal(block.position, before === null ? 0 : before.position + before.framesBytes);
      assert.equal(block.framesBytes, bytes);
    }
    assert.ok(block.framesBytes <= BLOCK_BYTES_MAX || block.firstSeq === block.lastSeq);
    before = block;
  }
  const frames = Buffer.concat(runs.map((run) => run.frames));
  assert.ok(Buffer.concat(blocks.flatMap((block) => block.parts)).equals(frames));
  assert.equal(before?.lastSeq ?? 0, runs.at(-1)?.lastSeq ?? last?.lastSeq ?? 0);
}

describe('packing runs into blocks', () => {
  it('keeps every event, in order, in blocks of whole frames that are not too large', () => {
    const sizes = fc.oneof(fc.nat(100), fc.nat(30_000), fc.nat(200_000));
    const runs = fc.array(fc.array(sizes, { minLength: 1, maxLength: 6 }), { maxLength: 8 });
    fc.assert(
      fc.property(runs, runs, fc.constantFrom(0, 10, FOR_EVER), (first, second, spanMsMax) => {
        const appended = timedRuns(1, first, 7);
        const blocks = packRuns(null, appended, spanMsMax);
        assertContinues(null, appended, blocks);
        const last = blocks.at(-1) ?? null;
        const more = timedRuns((last?.lastSeq ?? 0) + 1, second, 7);
        assertContinues(last, more, packRuns(last, more, spanMsMax));
      }),
      { numRuns: 60 },
    );
  });

  it('merges small runs into the last block until it is no longer small', () => {
    let last: BlockShape | null = null;
    const stored: BlockShape[] = [];
    for (let seq = 1; seq <= 60; seq++) {
      const [block, ...more] = packRuns(last, timedRuns(seq, [[1000]]), FOR_EVER);
      assert.ok(block !== undefined && more.length === 0);
      if (block.mergesLast) stored.pop();
      stored.push(block);
      last = block;
    }
    assert.equal(stored.length, 4);
    for (const { framesBytes } of stored.slice(0, -1)) {
      assert.ok(framesBytes <= MERGE_BYTES_MAX && framesBytes > MERGE_BYTES_MAX - 1100);
    }
  });

  it('opens a new block for what is much younger than the first event of the last', () => {
    const [last] = packRuns(null, timedRuns(1, [[10]]), 1000);
    assert.ok(last !== undefined);
    const at = (writtenAtMs: number) => packRuns(last, [{ ...runOf(1, 2, [10]), writtenAtMs }], 1000);
    assert.equal(at(1000)[0]?.mergesLast, true);
    assert.equal(at(1001)[0]?.mergesLast, false);
  });

  it('packs nothing into nothing', () => {
    assert.deepEqual(packRuns(null, [], FOR_EVER), []);
    const [last] = packRuns(null, timedRuns(1, [[10]]), FOR_EVER);
    assert.deepEqual(packRuns(last ?? null, [], FOR_EVER), []);
  });
});

describe('the borders of frames', () => {
  it('are found after the blank line, also where lines of data are empty', () => {
    const run = runOf(1, 1, [0, 5, 3, 0, 0, 9]);
    let at = 0;
    for (let seq = 1; seq <= 6; seq++) {
      at += frameOf(1, seq, [0, 5, 3, 0, 0, 9][seq - 1] ?? 0).length;
      assert.equal(skipFrames(run.frames, seq), at);
    }
    assert.equal(at, run.frames.length);
    assert.equal(endOfFrame(run.frames, 0), frameOf(1, 1, 0).length);
    assert.throws(() => endOfFrame(run.frames.subarray(0, at - 1), skipFrames(run.frames, 5)), {
      name: 'InvariantError',
    });
  });

  it('tell how many frames fit, at least one where there is one', () => {
    const { frames } = runOf(1, 1, sizesOf(3, 100));
    const one = skipFrames(frames, 1);
    const two = skipFrames(frames, 2);
    assert.deepEqual(framesWithin(frames, 0, 1), { count: 1, end: one });
    assert.deepEqual(framesWithin(frames, 0, two - 1), { count: 1, end: one });
    assert.deepEqual(framesWithin(frames, 0, two), { count: 2, end: two });
    assert.deepEqual(framesWithin(frames, one, two - one), { count: 1, end: two });
    assert.deepEqual(framesWithin(frames, frames.length, 1000), { count: 0, end: frames.length });
  });

  it('are where a collected run ends, which is as long as fits and may be shown (I1, I4)', () => {
    const runs = [runOf(1, 1, sizesOf(3, 50)), runOf(1, 4, sizesOf(2, 50)), runOf(1, 6, sizesOf(4, 50))];
    const whole = Buffer.concat(runs.map((run) => run.frames));
    const bytes = fc.integer({ min: 1, max: whole.length + 10 });
    fc.assert(
      fc.property(fc.nat(2), bytes, fc.integer({ min: 3, max: 12 }), (afterSeq, bytesMax, committed) => {
        const run = collectRun(runs, { afterSeq, bytesMax, committed });
        assert.ok(run !== null);
        const start = skipFrames(whole, afterSeq);
        const shown = whole.subarray(0, skipFrames(whole, Math.min(committed, 9)));
        const { count, end } = framesWithin(shown, start, bytesMax);
        assert.deepEqual([run.firstSeq, run.lastSeq], [afterSeq + 1, afterSeq + count]);
        assert.ok(whole.subarray(start, end).equals(run.frames));
      }),
    );
    assert.equal(collectRun([], { afterSeq: 0, committed: 9, bytesMax: 100 }), null);
    assert.equal(collectRun(runs, { afterSeq: 2, committed: 2, bytesMax: 100 }), null);
  });
});
