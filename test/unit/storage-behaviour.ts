import assert from 'node:assert/strict';
import { afterEach, beforeEach, describe, it } from 'node:test';
import {
  configOf,
  EPOCH,
  frameOf,
  type LogStage,
  readAll,
  runOf,
  settleDeletes,
  sizesOf,
} from './storage-stage.js';

const NOW_MS = 1_750_000_000_000;
const READ_BYTES = 64 * 1024;
const RETENTION = { events: 0, bytes: 0, ageMs: 0 };

/** What every log does, whatever is behind it. */
export function describeLog(name: string, open: () => LogStage): void {
  describe(name, () => {
    let stage: LogStage;

    beforeEach(() => {
      stage = open();
    });
    afterEach(async () => {
      await stage.dispose();
    });

    function create(retention: Partial<typeof RETENTION> = {}): number {
      const id = stage.log.nextId();
      stage.log.create({ id, name: `stream-${id}`, epoch: EPOCH, config: configOf(retention) });
      return id;
    }

    function append(id: number, firstSeq: number, sizes: readonly number[], nowMs = NOW_MS): void {
      stage.log.append(id, runOf(id, firstSeq, sizes), nowMs);
    }

    async function reopen(): Promise<void> {
      stage = await stage.reopen();
    }

    it('has no streams at first, and commits nothing without complaint', async () => {
      assert.deepEqual(stage.loaded, []);
      await stage.log.commit();
      assert.equal(stage.log.hasPendingDeletes, false);
    });

    it('brings a stream back as it was created', async () => {
      const id = create({ events: 10, ageMs: 60_000 });
      await stage.log.commit();
      await reopen();
      assert.deepEqual(stage.loaded, [
        {
          id,
          name: `stream-${id}`,
          epoch: EPOCH,
          config: configOf({ events: 10, ageMs: 60_000 }),
          closed: false,
          floor: 1,
          head: 0,
          bytes: 0,
        },
      ]);
    });

    it('brings every committed event back, byte for byte (I3)', async () => {
      const id = create();
      append(id, 1, [10, 200, 0]);
      await stage.log.commit();
      append(id, 4, [3000]);
      append(id, 5, [1, 2, 3]);
      await stage.log.commit();
      await reopen();
      const [loaded] = stage.loaded;
      assert.equal(loaded?.head, 7);
      const expected = Buffer.concat([10, 200, 0, 3000, 1, 2, 3].map((size, i) => frameOf(id, i + 1, size)));
      assert.equal(loaded?.bytes, expected.length);
      assert.deepEqual(readAll(stage, id, 0, READ_BYTES), { lastSeq: 7, frames: expected });
    });

    it('forgets what was not committed', async () => {
      const id = create();
      append(id, 1, [10]);
      await stage.log.commit();
      append(id, 2, [10]);
      create();
      stage.log.close(id);
      await reopen();
      assert.equal(stage.loaded.length, 1);
      assert.equal(stage.loaded[0]?.head, 1);
      assert.equal(stage.loaded[0]?.closed, false);
    });

    it('shows no event before its commit, and at once after it (I4)', async () => {
      const id = create();
      append(id, 1, [10]);
      assert.equal(stage.reader.read(id, 0, READ_BYTES, 1), null);
      await stage.log.commit();
      assert.equal(stage.reader.read(id, 0, READ_BYTES, 1)?.lastSeq, 1);
      append(id, 2, [10]);
      assert.equal(stage.reader.read(id, 1, READ_BYTES, 1), null);
      await stage.log.commit();
      assert.equal(stage.reader.read(id, 1, READ_BYTES, 1)?.lastSeq, 2);
    });

    it('reads whole frames after the cursor, as many as fit, but at least one (I1)', async () => {
      const id = create();
      const sizes = Array.from({ length: 300 }, (_, index) => (index * 37) % 900);
      for (let at = 0; at < sizes.length; at += 7) {
        append(id, at + 1, sizes.slice(at, at + 7));
        await stage.log.commit();
      }
      for (const bytesMax of [1, 50, 1000, 20_000, 10_000_000]) {
        for (const afterSeq of [0, 1, 6, 7, 100, 298, 299]) {
          const run = stage.reader.read(id, afterSeq, bytesMax, 1);
          assert.ok(run !== null);
          const expected: Uint8Array[] = [];
          let bytes = 0;
          for (let seq = afterSeq + 1; seq <= sizes.length; seq++) {
            const frame = frameOf(id, seq, sizes[seq - 1] ?? 0);
            if (expected.length > 0 && bytes + frame.length > bytesMax) break;
            expected.push(frame);
            bytes += frame.length;
          }
          assert.equal(run.firstSeq, afterSeq + 1);
          assert.equal(run.lastSeq, afterSeq + expected.length);
          assert.ok(Buffer.concat(expected).equals(run.frames));
        }
      }
    });

    it('gives frames in memory of their own, which can be handed to another thread', async () => {
      const id = create();
      append(id, 1, [10, 10, 10]);
      await stage.log.commit();
      for (const afterSeq of [0, 1]) {
        const { frames } = stage.reader.read(id, afterSeq, READ_BYTES, 1) ?? assert.fail();
        assert.equal(frames.byteOffset, 0);
        assert.equal(frames.buffer.byteLength, frames.length);
        structuredClone(frames, { transfer: [frames.buffer as ArrayBuffer] });
      }
      assert.equal(stage.reader.read(id, 0, READ_BYTES, 1)?.lastSeq, 3);
    });

    it('has nothing at the head, beyond it, below the floor, and of streams it does not know', async () => {
      const id = create();
      append(id, 1, sizesOf(9, 10));
      await stage.log.commit();
      assert.equal(stage.reader.read(id, 9, READ_BYTES, 1), null);
      assert.equal(stage.reader.read(id, 100, READ_BYTES, 1), null);
      assert.equal(stage.reader.read(id, Number.MAX_SAFE_INTEGER, READ_BYTES, 1), null);
      assert.equal(stage.reader.read(id, 3, READ_BYTES, 5), null);
      assert.equal(stage.reader.read(id, 4, READ_BYTES, 5)?.firstSeq, 5);
      assert.equal(stage.reader.read(id + 1, 0, READ_BYTES, 1), null);
    });

    it('copies what is appended', async () => {
      const id = create();
      const run = runOf(id, 1, [100]);
      stage.log.append(id, run, NOW_MS);
      run.frames.fill(0);
      await stage.log.commit();
      assert.ok(readAll(stage, id, 0, READ_BYTES).frames.equals(frameOf(id, 1, 100)));
    });

    it('keeps frames and runs larger than a megabyte', async () => {
      const id = create();
      const sizes = [3_000_000, 10, ...sizesOf(4000, 700), 1_200_000];
      append(id, 1, sizes);
      await stage.log.commit();
      append(id, sizes.length + 1, [5, 2_000_000]);
      await stage.log.commit();
      await reopen();
      const all = [...sizes, 5, 2_000_000].map((size, index) => frameOf(id, index + 1, size));
      assert.ok(readAll(stage, id, 0, READ_BYTES).frames.equals(Buffer.concat(all)));
      assert.equal(stage.reader.read(id, 0, READ_BYTES, 1)?.lastSeq, 1);
    });

    it('keeps streams apart', async () => {
      const ids = Array.from({ length: 20 }, () => create());
      for (let round = 0; round < 5; round++) {
        for (const id of ids) append(id, round * (id + 1) + 1, sizesOf(id + 1, 30));
        await stage.log.commit();
      }
      await reopen();
      for (const id of ids) {
        const expected = Array.from({ length: 5 * (id + 1) }, (_, index) => frameOf(id, index + 1, 30));
        assert.ok(readAll(stage, id, 0, 500).frames.equals(Buffer.concat(expected)));
      }
    });

    it('remembers that a stream was closed', async () => {
      const id = create();
      append(id, 1, [1]);
      stage.log.close(id);
      await stage.log.commit();
      await reopen();
      assert.equal(stage.loaded[0]?.closed, true);
      assert.equal(stage.loaded[0]?.head, 1);
    });

    it('trims to the very event, and reads nothing below (I5)', async () => {
      const id = create();
      append(id, 1, sizesOf(100, 50));
      await stage.log.commit();
      stage.log.trim(id, 42);
      assert.equal(stage.log.floor(id), 42);
      await stage.log.commit();
      await settleDeletes(stage.log);
      await reopen();
      assert.equal(stage.loaded[0]?.floor, 42);
      assert.equal(stage.reader.read(id, 40, READ_BYTES, 42), null);
      const { frames, lastSeq } = readAll(stage, id, 41, READ_BYTES);
      assert.equal(lastSeq, 100);
      assert.ok(frames.equals(runOf(id, 42, sizesOf(59, 50)).frames));
    });

    it('never moves a floor back, nor beyond what was appended (I9)', async () => {
      const id = create();
      append(id, 1, sizesOf(10, 50));
      await stage.log.commit();
      stage.log.trim(id, 5);
      stage.log.trim(id, 3);
      assert.equal(stage.log.floor(id), 5);
      stage.log.trim(id, 1000);
      assert.equal(stage.log.floor(id), 11);
      await stage.log.commit();
      assert.equal(stage.log.bytes(id), 0);
    });

    it('knows where the head was when every event is gone (I3)', async () => {
      const id = create();
      append(id, 1, sizesOf(500, 200));
      await stage.log.commit();
      stage.log.trim(id, 501);
      await stage.log.commit();
      await settleDeletes(stage.log);
      await reopen();
      assert.equal(stage.loaded[0]?.floor, 501);
      assert.equal(stage.loaded[0]?.head, 500);
      append(id, 501, [7]);
      await stage.log.commit();
      await reopen();
      assert.equal(stage.reader.read(id, 499, READ_BYTES, 501), null);
      assert.ok(readAll(stage, id, 500, READ_BYTES).frames.equals(frameOf(id, 501, 7)));
    });

    it('trims what is appended in the same commit', async () => {
      const id = create();
      append(id, 1, sizesOf(20, 10));
      stage.log.trim(id, 15);
      append(id, 21, sizesOf(20, 10));
      await stage.log.commit();
      await reopen();
      assert.equal(stage.loaded[0]?.floor, 15);
      assert.equal(readAll(stage, id, 14, READ_BYTES).lastSeq, 40);
    });

    it('keeps the newest events that retention asks for, to the very event, and never above twice that', async () => {
      const id = create({ events: 100 });
      for (let head = 0; head < 1000; head += 50) {
        append(id, head + 1, sizesOf(50, 20));
        await stage.log.commit();
        stage.log.applyRetention(id, NOW_MS);
        const kept = head + 50 - stage.log.floor(id) + 1;
        assert.ok(kept >= Math.min(100, head + 50) && kept <= 200, `${kept} events`);
      }
      assert.ok(stage.log.floor(id) > 1);
    });

    it('keeps the newest bytes that retention asks for, and about twice that at most', async () => {
      const id = create({ bytes: 100_000 });
      for (let head = 0; head < 2000; head += 20) {
        append(id, head + 1, sizesOf(20, 1000));
        await stage.log.commit();
        stage.log.applyRetention(id, NOW_MS);
        await stage.log.commit();
        const { frames } = readAll(stage, id, stage.log.floor(id) - 1, 1_000_000);
        assert.ok(frames.length >= Math.min(100_000, (head + 20) * 1000));
        assert.ok(stage.log.bytes(id) >= frames.length);
        assert.ok(stage.log.bytes(id) <= 200_000);
      }
      assert.ok(stage.log.floor(id) > 1);
    });

    it('keeps events as long as retention asks for, and about twice that at most', async () => {
      const id = create({ ageMs: 10_000 });
      for (let second = 0; second < 100; second++) {
        append(id, second + 1, [300], NOW_MS + second * 1000);
        await stage.log.commit();
        stage.log.applyRetention(id, NOW_MS + second * 1000);
        const floor = stage.log.floor(id);
        const oldestKeptMs = (second - (floor - 1)) * 1000;
        assert.ok(
          oldestKeptMs >= Math.min(10, second) * 1000 && oldestKeptMs <= 21_000,
          `${oldestKeptMs} ms`,
        );
      }
      stage.log.applyRetention(id, NOW_MS + 500_000);
      assert.equal(stage.log.floor(id), 101);
      await stage.log.commit();
      await reopen();
      assert.equal(stage.loaded[0]?.head, 100);
    });

    it('forgets a removed stream, and finds its events with no other', async () => {
      const id = create();
      const other = create();
      append(id, 1, sizesOf(3000, 100));
      append(other, 1, [1]);
      await stage.log.commit();
      stage.log.remove(id);
      await stage.log.commit();
      assert.equal(stage.reader.read(id, 0, READ_BYTES, 1) === null || stage.log.hasPendingDeletes, true);
      await reopen();
      assert.deepEqual(
        stage.loaded.map((stream) => stream.id),
        [other],
      );
      const next = create();
      assert.notEqual(next, id);
      await settleDeletes(stage.log);
      assert.equal(stage.reader.read(id, 0, READ_BYTES, 1), null);
      assert.equal(readAll(stage, other, 0, READ_BYTES).lastSeq, 1);
    });

    it('takes a stream that comes and goes between two commits', async () => {
      const id = create();
      append(id, 1, [10]);
      stage.log.remove(id);
      await stage.log.commit();
      await settleDeletes(stage.log);
      assert.equal(stage.reader.read(id, 0, READ_BYTES, 1), null);
      await reopen();
      assert.deepEqual(stage.loaded, []);
    });

    it('gives another id each time, above those of all streams', async () => {
      const ids = [create(), create(), create()];
      assert.equal(new Set(ids).size, 3);
      await stage.log.commit();
      await reopen();
      assert.ok(stage.log.nextId() > Math.max(...ids));
    });

    it('says what it occupies', async () => {
      const id = create();
      append(id, 1, [1_000_000]);
      await stage.log.commit();
      assert.ok(stage.log.sizeBytes() >= 1_000_000);
      await stage.log.sync();
    });

    it('refuses a run that does not follow (I1), an id that is taken (I3), and what comes after the end', async () => {
      const id = create();
      append(id, 1, [1, 1]);
      assert.throws(() => append(id, 2, [1]), { name: 'InvariantError' });
      assert.throws(() => append(id, 4, [1]), { name: 'InvariantError' });
      const taken = { id, name: 'other', epoch: EPOCH, config: configOf() };
      assert.throws(() => stage.log.create(taken), { name: 'InvariantError' });
      stage.log.close(id);
      assert.throws(() => append(id, 3, [1]), { name: 'InvariantError' });
      assert.throws(() => stage.log.floor(id + 1), { name: 'InvariantError' });
    });
  });
}
