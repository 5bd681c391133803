import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { NOW_MS, READ_BYTES, useLog } from './storage-bench.js';
import {
  after,
  EPOCH,
  frameOf,
  type LogStage,
  readAll,
  runOf,
  settleDeletes,
  sizesOf,
} from './storage-stage.js';

/** What every log keeps and lets go, whatever is behind it. */
export function describeLogRetention(name: string, open: () => LogStage): void {
  describe(name, () => {
    const bench = useLog(open);
    const { create, append, reopen } = bench;

    it('trims to the very event, and reads nothing below (I5)', async () => {
      const id = create();
      append(id, 1, sizesOf(100, 50));
      await bench.stage.log.commit();
      bench.stage.log.trim(id, 42);
      assert.equal(bench.stage.log.floor(id), 42);
      await bench.stage.log.commit();
      await settleDeletes(bench.stage.log);
      await reopen();
      assert.equal(bench.stage.loaded[0]?.floor, 42);
      assert.equal(bench.stage.reader.read(id, after(40, READ_BYTES, 42)), null);
      const { frames, lastSeq } = readAll(bench.stage, id, 41, READ_BYTES);
      assert.equal(lastSeq, 100);
      assert.ok(frames.equals(runOf(id, 42, sizesOf(59, 50)).frames));
    });

    it('never moves a floor back, nor beyond what was appended (I9)', async () => {
      const id = create();
      append(id, 1, sizesOf(10, 50));
      await bench.stage.log.commit();
      bench.stage.log.trim(id, 5);
      bench.stage.log.trim(id, 3);
      assert.equal(bench.stage.log.floor(id), 5);
      bench.stage.log.trim(id, 1000);
      assert.equal(bench.stage.log.floor(id), 11);
      await bench.stage.log.commit();
      assert.equal(bench.stage.log.bytes(id), 0);
    });

    it('knows where the head was when every event is gone (I3)', async () => {
      const id = create();
      append(id, 1, sizesOf(500, 200));
      await bench.stage.log.commit();
      bench.stage.log.trim(id, 501);
      await bench.stage.log.commit();
      await settleDeletes(bench.stage.log);
      await reopen();
      assert.equal(bench.stage.loaded[0]?.floor, 501);
      assert.equal(bench.stage.loaded[0]?.head, 500);
      append(id, 501, [7]);
      await bench.stage.log.commit();
      await reopen();
      assert.equal(bench.stage.reader.read(id, after(499, READ_BYTES, 501)), null);
      assert.ok(readAll(bench.stage, id, 500, READ_BYTES).frames.equals(frameOf(id, 501, 7)));
    });

    it('trims what is appended in the same commit', async () => {
      const id = create();
      append(id, 1, sizesOf(20, 10));
      bench.stage.log.trim(id, 15);
      append(id, 21, sizesOf(20, 10));
      await bench.stage.log.commit();
      await reopen();
      assert.equal(bench.stage.loaded[0]?.floor, 15);
      assert.equal(readAll(bench.stage, id, 14, READ_BYTES).lastSeq, 40);
    });

    it('keeps the newest events that retention asks for, to the very event, and never above twice that', async () => {
      const id = create({ events: 100 });
      for (let head = 0; head < 1000; head += 50) {
        append(id, head + 1, sizesOf(50, 20));
        await bench.stage.log.commit();
        bench.stage.log.applyRetention(id, NOW_MS);
        const kept = head + 50 - bench.stage.log.floor(id) + 1;
        assert.ok(kept >= Math.min(100, head + 50) && kept <= 200, `${kept} events`);
      }
      assert.ok(bench.stage.log.floor(id) > 1);
    });

    it('keeps the newest bytes that retention asks for, and about twice that at most', async () => {
      const id = create({ bytes: 100_000 });
      for (let head = 0; head < 2000; head += 20) {
        append(id, head + 1, sizesOf(20, 1000));
        await bench.stage.log.commit();
        bench.stage.log.applyRetention(id, NOW_MS);
        await bench.stage.log.commit();
        const { frames } = readAll(bench.stage, id, bench.stage.log.floor(id) - 1, 1_000_000);
        assert.ok(frames.length >= Math.min(100_000, (head + 20) * 1000));
        assert.ok(bench.stage.log.bytes(id) >= frames.length);
        assert.ok(bench.stage.log.bytes(id) <= 200_000);
      }
      assert.ok(bench.stage.log.floor(id) > 1);
    });

    it('lets the oldest blocks of all streams go first, whichever stream they are of, but for the last of each', async () => {
      const { log } = bench.stage;
      const [old, young, small] = [create(), create(), create()];
      append(small, 1, [100]);
      for (let second = 0; second < 20; second++) {
        const [id, seq] = second < 10 ? [old, second + 1] : [young, second - 9];
        append(id, seq, [40_000], NOW_MS + 1000 * second);
        await log.commit();
      }
      const blockBytes = runOf(old, 1, [40_000]).frames.length;
      assert.ok(Math.abs(log.keptBytes() - 20 * blockBytes) < 1000);

      assert.deepEqual([...log.trimOldest(log.keptBytes())], []);
      assert.deepEqual([...log.trimOldest(log.keptBytes() - 1)], [old]);
      assert.equal(log.floor(old), 2, 'no more than has to');
      assert.deepEqual([...log.trimOldest(16 * blockBytes)], [old]);
      assert.deepEqual([log.floor(old), log.floor(young), log.floor(small)], [6, 1, 1]);
      assert.deepEqual([...log.trimOldest(5 * blockBytes)].sort(), [old, young].sort());
      assert.deepEqual([log.floor(old), log.floor(young), log.floor(small)], [10, 8, 1]);
      assert.ok(log.keptBytes() <= 5 * blockBytes);

      assert.deepEqual([...log.trimOldest(0)], [young]);
      assert.deepEqual([log.floor(old), log.floor(young), log.floor(small)], [10, 10, 1]);
      assert.deepEqual([...log.trimOldest(0)], [], 'the last block of a stream stays');
      await log.commit();
      await settleDeletes(log);
      await reopen();
      assert.deepEqual(
        [old, young, small].map((id) => bench.stage.loaded.find((stream) => stream.id === id)?.floor),
        [10, 10, 1],
      );
      assert.ok(readAll(bench.stage, old, 9, READ_BYTES).frames.equals(frameOf(old, 10, 40_000)));
    });

    it('takes blocks of several streams by turns, as old as they are', async () => {
      const { log } = bench.stage;
      const ids = [create(), create(), create()];
      for (let seq = 1; seq <= 10; seq++) {
        for (const [index, id] of ids.entries()) {
          append(id, seq, [40_000], NOW_MS + 1000 * (3 * seq + index));
          await log.commit();
        }
      }
      const [first, second, third] = ids as [number, number, number];
      const blockBytes = runOf(first, 1, [40_000]).frames.length;
      log.trimOldest(log.keptBytes() - 3.5 * blockBytes);
      assert.deepEqual([log.floor(first), log.floor(second), log.floor(third)], [3, 2, 2]);
      log.remove(first);
      log.trimOldest(log.keptBytes() - 4.5 * blockBytes);
      assert.deepEqual([log.floor(second), log.floor(third)], [5, 4]);
      assert.equal(log.keptBytes(), log.bytes(second) + log.bytes(third));
    });

    it('keeps events as long as retention asks for, and about twice that at most', async () => {
      const id = create({ ageMs: 10_000 });
      for (let second = 0; second < 100; second++) {
        append(id, second + 1, [300], NOW_MS + second * 1000);
        await bench.stage.log.commit();
        bench.stage.log.applyRetention(id, NOW_MS + second * 1000);
        const floor = bench.stage.log.floor(id);
        const oldestKeptMs = (second - (floor - 1)) * 1000;
        assert.ok(
          oldestKeptMs >= Math.min(10, second) * 1000 && oldestKeptMs <= 21_000,
          `${oldestKeptMs} ms`,
        );
      }
      bench.stage.log.applyRetention(id, NOW_MS + 500_000);
      assert.equal(bench.stage.log.floor(id), 101);
      await bench.stage.log.commit();
      await reopen();
      assert.equal(bench.stage.loaded[0]?.head, 100);
    });

    it('3.6 keeps what named subscribers hold, says when that is more than it keeps, and no longer when it is let go', async () => {
      const { log } = bench.stage;
      const id = bench.create({ events: 10 }, 'reject');
      const acknowledge = (seq: number | null): void =>
        log.acknowledge(id, 'ada', seq === null ? null : `${EPOCH}.${seq}`);
      acknowledge(3);
      append(id, 1, sizesOf(23, 50));
      await log.commit();
      assert.equal(log.isHeld(id), false, '20 of them are not acknowledged');
      append(id, 24, [50]);
      await log.commit();
      assert.equal(log.isHeld(id), true);
      log.applyRetention(id, NOW_MS);
      await log.commit();
      assert.deepEqual([log.floor(id), log.isHeld(id)], [4, true]);
      await reopen();
      assert.deepEqual([bench.stage.log.floor(id), bench.stage.log.isHeld(id)], [4, true]);
      bench.stage.log.acknowledge(id, 'ada', `${EPOCH}.20`);
      await bench.stage.log.commit();
      assert.equal(bench.stage.log.isHeld(id), false);
      bench.stage.log.applyRetention(id, NOW_MS);
      assert.equal(bench.stage.log.floor(id), 15);
    });

    it('3.6 lets go of what is held for its age, and of what was held by who is forgotten', async () => {
      const { log } = bench.stage;
      const aged = bench.create({ events: 10, ageMs: 1000 }, 'reject');
      const left = bench.create({ events: 10 }, 'reject');
      for (const id of [aged, left]) {
        log.acknowledge(id, 'ada', `${EPOCH}.0`);
        append(id, 1, sizesOf(30, 50));
      }
      await log.commit();
      assert.deepEqual([log.isHeld(aged), log.isHeld(left)], [true, true]);
      log.applyRetention(aged, NOW_MS + 5000);
      log.acknowledge(left, 'ada', null);
      log.applyRetention(left, NOW_MS);
      await log.commit();
      assert.deepEqual(
        [log.floor(aged), log.isHeld(aged)],
        [31, false],
        'whose next event is gone holds nothing',
      );
      assert.deepEqual([log.isHeld(left)], [false]);
      log.applyRetention(left, NOW_MS);
      assert.equal(log.floor(left), 21);
    });
  });
}
