import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { PRODUCER } from '#gapless/core/producer-record.js';
import {
  APPEND_DUPLICATE,
  APPEND_NO_MEMORY,
  APPEND_PRODUCER_GAP,
  APPEND_UNCOMMITTED,
  APPENDED,
} from '#gapless/ring/append.js';
import type { ProducerClaim } from '#gapless/ring/claim-judge.js';
import { removeStream } from '#gapless/ring/lifecycle.js';
import { READ_CAUGHT_UP, READ_OK, READ_OVERTAKEN } from '#gapless/ring/read.js';
import type { StreamHandle } from '#gapless/ring/rings.js';
import { HookedRun, textsOf } from './ring-hooked-run.js';
import { RingStage } from './ring-stage.js';

const KIB = 1024;
/** After this a ring gives way to one that would only like to grow. */
const IDLE_MS = 1000;
/** What one stream takes: a ring of 8 KiB with an event of more than 4, and an index of 1 KiB. */
const STREAM_BYTES = 9 * KIB;
const LARGE = 'x'.repeat(5000);

function open(stage: RingStage, slot: number): StreamHandle {
  return stage.open({ slot, epoch: `epoch00${String(slot).padStart(3, '0')}`, dataBytesMax: 64 * KIB });
}

/** Streams with one committed event each, that have all of the memory. */
function fill(stage: RingStage, count: number): StreamHandle[] {
  return Array.from({ length: count }, (_, slot) => {
    const stream = open(stage, slot);
    stage.append(stream, LARGE);
    stage.commit(stream);
    return stream;
  });
}

/** Those that hold no event any more. */
function slotsThatGave(stage: RingStage, streams: readonly StreamHandle[]): number[] {
  return streams.filter((stream) => stage.positions(stream).bytes === 0).map(({ slot }) => slot);
}

describe('memory for a stream that finds none, with a durable log', () => {
  it('comes from a ring whose events are committed: it is empty then, its positions stay, and it is appended to again (I3, I9)', () => {
    const stage = new RingStage(2 * STREAM_BYTES, { durable: true });
    const [first, second] = fill(stage, 2) as [StreamHandle, StreamHandle];
    const third = open(stage, 2);
    stage.append(third, LARGE);
    assert.equal(stage.appender.reclaimed, 1);
    const [given, kept] = stage.positions(first).floor === 2 ? [first, second] : [second, first];
    const { floor, committed, head, bytes } = stage.positions(given);
    assert.deepEqual([floor, committed, head, bytes], [2, 1, 1, 0]);
    assert.equal(stage.reader.read(given, 0, 1024, new HookedRun(() => {})), READ_OVERTAKEN);
    assert.equal(stage.reader.lowestSeq, 1, 'the log has it');
    assert.equal(stage.reader.read(given, 1, 1024, new HookedRun(() => {})), READ_CAUGHT_UP);
    assert.deepEqual(stage.texts(kept, 0), [LARGE]);

    stage.commit(third);
    stage.append(given, 'again');
    stage.commit(given);
    assert.deepEqual(stage.texts(given, 1), ['again']);
    assert.equal(stage.positions(given).head, 2);
  });

  it('3.4 comes from other rings for what is remembered of producers, and is not taken from there again', () => {
    const stage = new RingStage(2 * STREAM_BYTES, { durable: true });
    const streams = fill(stage, 2) as [StreamHandle, StreamHandle];
    const [publisher] = streams;
    const claimOf = (seq: number): ProducerClaim => {
      return { kind: PRODUCER, digest: Int32Array.of(1, 2, 3, 4), epoch: 0, seq };
    };
    assert.equal(stage.tryAppendOf(claimOf(0), publisher, 'x'), APPENDED);
    stage.commit(publisher);
    assert.ok(stage.appender.reclaimed > 0);
    for (const stream of streams) {
      stage.tryAppend(stream, LARGE);
      stage.commit(stream);
    }
    assert.equal(stage.tryAppendOf(claimOf(0), publisher, 'x'), APPEND_DUPLICATE);
    assert.equal(stage.tryAppendOf(claimOf(2), publisher, 'x'), APPEND_PRODUCER_GAP);
  });

  it('never comes from events that are not committed: the publish is refused, and nothing has changed (I5)', () => {
    const stage = new RingStage(2 * STREAM_BYTES, { durable: true });
    const streams = [0, 1].map((slot) => open(stage, slot));
    for (const stream of streams) stage.append(stream, LARGE);
    stage.nowMs += 10 * IDLE_MS;
    const third = open(stage, 2);
    assert.equal(stage.tryAppend(third, LARGE), APPEND_NO_MEMORY);
    for (const stream of streams) assert.deepEqual(stage.positions(stream).floor, 1);
    assert.deepEqual([stage.positions(third).head, stage.appender.reclaimed], [0, 0]);

    stage.commit(streams[1] as StreamHandle);
    assert.equal(stage.tryAppend(third, LARGE), APPENDED);
    assert.equal(stage.positions(streams[0] as StreamHandle).floor, 1);
    assert.equal(stage.positions(streams[1] as StreamHandle).floor, 2);
  });

  it('comes from rings that idle before those that are in use', () => {
    for (const idle of [0, 1, 2]) {
      const stage = new RingStage(3 * STREAM_BYTES, { durable: true });
      const streams = fill(stage, 3);
      stage.nowMs += IDLE_MS;
      for (const stream of streams) {
        if (stream.slot === idle) continue;
        stage.append(stream, 'busy');
        stage.commit(stream);
      }
      stage.append(open(stage, 3), LARGE);
      assert.deepEqual(slotsThatGave(stage, streams), [idle]);
    }
  });

  it('is not taken from rings in use so that another may grow: that one evicts within what it has', () => {
    const stage = new RingStage(2 * STREAM_BYTES, { durable: true });
    const [first, second] = fill(stage, 2) as [StreamHandle, StreamHandle];
    for (let i = 0; i < 5; i++) {
      stage.append(first, LARGE);
      stage.commit(first);
    }
    assert.deepEqual(stage.texts(second, 0), [LARGE]);
    assert.equal(stage.appender.reclaimed, 0);
    assert.ok(stage.positions(first).floor > 1);
  });

  it('is taken from rings that idle, so that one in use keeps more of its events from then on', () => {
    const stage = new RingStage(64 * KIB, { durable: true, streamsMax: 7 });
    const streams = fill(stage, 7);
    const busy = streams[6] as StreamHandle;
    stage.nowMs += IDLE_MS;
    for (const kept of [1, 2]) {
      stage.append(busy, LARGE);
      stage.commit(busy);
      const { floor, head } = stage.positions(busy);
      assert.equal(head - floor + 1, kept);
    }
    // Two rings of 8 KiB side by side make one of 16; in the first 16 KiB are the indexes of all.
    assert.deepEqual(slotsThatGave(stage, streams), [1, 2]);
  });

  it('lets a publisher go on whose ring is full of what is not committed, and could only not grow', () => {
    const stage = new RingStage(64 * KIB, { durable: true, streamsMax: 7 });
    const streams = fill(stage, 7);
    const busy = streams[6] as StreamHandle;
    for (let i = 0; i < 6; i++) stage.append(busy, LARGE);
    assert.deepEqual(slotsThatGave(stage, streams), [1, 2, 3, 4, 5]);
    assert.equal(stage.tryAppend(busy, LARGE), APPEND_UNCOMMITTED);
    assert.equal(stage.positions(busy).head, 7, 'a refused publish appended nothing');
    stage.commit(busy);
    assert.deepEqual(stage.texts(busy, 1), Array(6).fill(LARGE));
  });

  it('comes from as many streams as have a part of the block that is wanted, and from many a time', () => {
    const stage = new RingStage(256 * KIB, { durable: true, streamsMax: 64 });
    const small = Array.from({ length: 60 }, (_, slot) => open(stage, slot));
    for (const [at, stream] of small.entries()) {
      if (stage.tryAppend(stream, 'small') !== APPENDED) assert.fail(`no room for stream ${at}`);
      stage.commit(stream);
    }
    const large = stage.open({ slot: 60, epoch: 'large00001', dataBytesMax: 128 * KIB });
    for (let round = 0; round < 20; round++) {
      stage.append(large, 'l'.repeat(100_000));
      stage.commit(large);
      for (const stream of small) {
        stage.append(stream, `round ${round}`);
        stage.commit(stream);
        assert.deepEqual(stage.texts(stream, round + 1), [`round ${round}`]);
      }
    }
    for (const stream of [...small, large]) removeStream(stage.rings, stream);
    assert.equal(stage.usedBytes, 0);
  });

  it('leaves a reader that is copying it with nothing, or with what was there (I5)', () => {
    const stage = new RingStage(STREAM_BYTES, { durable: true });
    const [stream] = fill(stage, 1) as [StreamHandle];
    const other = open(stage, 1);
    const run = new HookedRun((copy) => {
      if (copy === 1) stage.append(other, 'y'.repeat(5000));
    });
    assert.equal(stage.reader.read(stream, 0, 8192, run), READ_OVERTAKEN);
    assert.equal(stage.reader.discarded, 1);
    stage.commit(other);
    assert.equal(stage.reader.read(other, 0, 8192, run), READ_OK);
    assert.deepEqual(textsOf(run), ['y'.repeat(5000)]);
  });
});

describe('memory for a stream that finds none, in memory mode', () => {
  it('is not taken from others: what retention keeps has no other place', () => {
    const stage = new RingStage(2 * STREAM_BYTES);
    const streams = [0, 1].map((slot) => open(stage, slot));
    for (const stream of streams) stage.append(stream, LARGE);
    stage.nowMs += 10 * IDLE_MS;
    assert.equal(stage.tryAppend(open(stage, 2), LARGE), APPEND_NO_MEMORY);
    for (const stream of streams) assert.deepEqual(stage.texts(stream, 0), [LARGE]);
  });
});
