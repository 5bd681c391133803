import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { APPEND_TOO_LARGE, APPEND_UNCOMMITTED, APPENDED } from '#gapless/ring/append.js';
import {
  addSubscribers,
  closeStream,
  commitStream,
  readPositions,
  removeStream,
} from '#gapless/ring/lifecycle.js';
import { FrameRun, READ_CAUGHT_UP, READ_GONE, READ_OK, READ_OVERTAKEN } from '#gapless/ring/read.js';
import { textsOf } from './ring-hooked-run.js';
import { RingStage, texts } from './ring-stage.js';

const RUN_BYTES = 2 ** 16;

function durableStage(): RingStage {
  return new RingStage(2 ** 20, { durable: true });
}

describe('a stream whose events wait for their commit', () => {
  it('shows none of them, and all up to the committed one afterwards (I4)', () => {
    const stage = durableStage();
    const stream = stage.open();
    const run = new FrameRun(0);
    stage.append(stream, 'a', 'b', 'c');
    assert.equal(stage.reader.read(stream, 0, RUN_BYTES, run), READ_CAUGHT_UP);
    assert.deepEqual([stage.reader.committedSeq, stage.reader.headSeq], [0, 3]);
    assert.equal(commitStream(stage.rings, stream, { seq: 2, logFloorSeq: 1 }), true);
    assert.deepEqual(stage.texts(stream, 0), ['a', 'b']);
    assert.equal(stage.reader.read(stream, 2, RUN_BYTES, run), READ_CAUGHT_UP);
    const { floor, logFloor, committed, head } = stage.positions(stream);
    assert.deepEqual([floor, logFloor, committed, head], [1, 1, 2, 3]);
    stage.commit(stream);
    assert.deepEqual(stage.texts(stream, 2), ['c']);
  });

  it('gives them to the log thread, up to the seq that it asks for and as far as they fit', () => {
    const stage = durableStage();
    const stream = stage.open();
    const run = new FrameRun(0);
    const all = texts('event', 10, 50);
    stage.append(stream, ...all);
    stage.commit(stream, 4);
    const readTo = (afterSeq: number, lastSeq: number, bytesMax: number) => {
      assert.equal(stage.reader.readUncommitted(stream, afterSeq, lastSeq, bytesMax, run), READ_OK);
      return textsOf(run);
    };
    assert.deepEqual(readTo(4, 10, RUN_BYTES), all.slice(4));
    assert.deepEqual(readTo(4, 7, RUN_BYTES), all.slice(4, 7));
    assert.deepEqual(readTo(2, 10, RUN_BYTES), all.slice(2), 'what is committed as well');
    assert.deepEqual(readTo(4, 10, 1), all.slice(4, 5), 'one at least');
    assert.deepEqual([run.firstSeq, run.lastSeq], [5, 5]);
    assert.equal(stage.reader.readUncommitted(stream, 10, 10, RUN_BYTES, run), READ_CAUGHT_UP);
    removeStream(stage.rings, stream);
    assert.equal(stage.reader.readUncommitted(stream, 4, 10, RUN_BYTES, run), READ_GONE);
  });

  it('keeps them all, refuses what would need their room, and takes it once they are committed (I5)', () => {
    const stage = durableStage();
    const stream = stage.open({ dataBytesMax: 8192 });
    const large = 'x'.repeat(2500);
    for (let i = 0; i < 3; i++) stage.append(stream, large);
    assert.equal(stage.tryAppend(stream, large), APPEND_UNCOMMITTED);
    assert.equal(stage.tryAppend(stream, 'x'.repeat(9000)), APPEND_TOO_LARGE);
    assert.deepEqual([stage.positions(stream).floor, stage.positions(stream).head], [1, 3]);
    stage.append(stream, 'fits');

    stage.commit(stream, 1);
    stage.append(stream, large);
    assert.deepEqual([stage.positions(stream).floor, stage.positions(stream).head], [2, 5]);
    assert.equal(stage.tryAppend(stream, large), APPEND_UNCOMMITTED, 'only what was committed made room');
    stage.commit(stream);
    assert.equal(stage.tryAppend(stream, large), APPENDED);
    const run = new FrameRun(0);
    assert.equal(stage.reader.read(stream, 0, RUN_BYTES, run), READ_OVERTAKEN);
  });

  it('evicts with the commit what retention does not ask to keep, and nothing of it before', () => {
    const stage = durableStage();
    const stream = stage.open({ events: 5 });
    stage.append(stream, ...texts('e', 30));
    assert.equal(stage.positions(stream).floor, 1);
    stage.commit(stream, 12);
    assert.equal(stage.positions(stream).floor, 13);
    stage.commit(stream);
    assert.equal(stage.positions(stream).floor, 26);
  });

  it('never goes back, nor beyond its head, and is left alone when it is another by now (I9, S1, S4)', () => {
    const stage = durableStage();
    const stream = stage.open();
    stage.append(stream, 'a', 'b', 'c');
    stage.commit(stream, 2);
    for (const seq of [1, 4]) {
      // Each on a stage of its own: the lock stays with who broke the rule.
      const other = durableStage();
      const broken = other.open();
      other.append(broken, 'a', 'b', 'c');
      other.commit(broken, 2);
      assert.throws(() => other.commit(broken, seq), { name: 'InvariantError' });
    }
    removeStream(stage.rings, stream);
    const next = stage.open({ epoch: 'nextepoch0' });
    assert.equal(commitStream(stage.rings, stream, { seq: 3, logFloorSeq: 3 }), false);
    const { committed, head, logFloor } = stage.positions(next);
    assert.deepEqual([committed, head, logFloor], [0, 0, 1]);
  });
});

describe('the subscribers of a stream', () => {
  it('are counted for it alone: who leaves after its end is not taken off the next one in its slot (S4)', () => {
    for (const end of ['removed while read', 'closed, then removed'] as const) {
      const stage = new RingStage(2 ** 16);
      const { rings } = stage;
      const first = stage.open();
      addSubscribers(rings, first, 1);
      addSubscribers(rings, first, 1);
      if (end === 'closed, then removed') {
        closeStream(rings, first, stage.nowMs);
        addSubscribers(rings, first, -1);
        assert.equal(stage.positions(first).subscribers, 1, 'a closed one is left as any other');
      }
      removeStream(rings, first);
      const next = stage.open({ epoch: 'nextepoch0' });
      assert.equal(stage.positions(next).subscribers, 0);
      addSubscribers(rings, next, 1);
      addSubscribers(rings, first, -1);
      addSubscribers(rings, first, 1);
      assert.equal(stage.positions(next).subscribers, 1);
      assert.equal(readPositions(rings, first), null);
    }
  });
});
