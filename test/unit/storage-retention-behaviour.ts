import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { NOW_MS, READ_BYTES, useLog } from './storage-bench.js';
import { after, frameOf, type LogStage, readAll, runOf, settleDeletes, sizesOf } from './storage-stage.js';

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
  });
}
