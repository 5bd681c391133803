import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { NOW_MS, READ_BYTES, useLog } from './storage-bench.js';
import {
  after,
  configOf,
  EPOCH,
  frameOf,
  type LogStage,
  readAll,
  runOf,
  settleDeletes,
  sizesOf,
} from './storage-stage.js';

/** What every log does, whatever is behind it. */
export function describeLog(name: string, open: () => LogStage): void {
  describe(name, () => {
    const bench = useLog(open);
    const { create, append, reopen } = bench;

    it('has no streams at first, and commits nothing without complaint', async () => {
      assert.deepEqual(bench.stage.loaded, []);
      await bench.stage.log.commit();
      assert.equal(bench.stage.log.hasPendingDeletes, false);
    });

    it('brings a stream back as it was created', async () => {
      const id = create({ events: 10, ageMs: 60_000 });
      await bench.stage.log.commit();
      await reopen();
      assert.deepEqual(bench.stage.loaded, [
        {
          id,
          name: `stream-${id}`,
          epoch: EPOCH,
          config: configOf({ events: 10, ageMs: 60_000 }),
          closed: false,
          floor: 1,
          head: 0,
          bytes: 0,
          acked: new Map(),
        },
      ]);
    });

    it('brings every committed event back, byte for byte (I3)', async () => {
      const id = create();
      append(id, 1, [10, 200, 0]);
      await bench.stage.log.commit();
      append(id, 4, [3000]);
      append(id, 5, [1, 2, 3]);
      await bench.stage.log.commit();
      await reopen();
      const [loaded] = bench.stage.loaded;
      assert.equal(loaded?.head, 7);
      const expected = Buffer.concat([10, 200, 0, 3000, 1, 2, 3].map((size, i) => frameOf(id, i + 1, size)));
      assert.equal(loaded?.bytes, expected.length);
      assert.deepEqual(readAll(bench.stage, id, 0, READ_BYTES), { lastSeq: 7, frames: expected });
    });

    it('brings back what named subscribers have, as it was committed last', async () => {
      const [id, other] = [create(), create()];
      const { log } = bench.stage;
      log.acknowledge(id, 'ada', `${EPOCH}.1`);
      log.acknowledge(id, 'bob', `${EPOCH}.2`);
      log.acknowledge(other, 'ada', `${EPOCH}.3`);
      await log.commit();
      log.acknowledge(id, 'ada', `${EPOCH}.4`);
      log.acknowledge(id, 'bob', null);
      log.acknowledge(id, 'x', `${EPOCH}.5`);
      await log.commit();
      log.acknowledge(id, 'ada', `${EPOCH}.6`);
      log.acknowledge(id, 'eve', `${EPOCH}.6`);
      await reopen();
      const acked = bench.stage.loaded.map((stream) => [stream.id, [...stream.acked].sort()]);
      assert.deepEqual(acked, [
        [
          id,
          [
            ['ada', `${EPOCH}.4`],
            ['x', `${EPOCH}.5`],
          ],
        ],
        [other, [['ada', `${EPOCH}.3`]]],
      ]);
    });

    it('forgets the subscribers of a removed stream, those of others not', async () => {
      const [id, other] = [create(), create()];
      append(id, 1, [10]);
      for (const stream of [id, other]) bench.stage.log.acknowledge(stream, 'ada', `${EPOCH}.1`);
      await bench.stage.log.commit();
      bench.stage.log.acknowledge(id, 'bob', `${EPOCH}.1`);
      bench.stage.log.remove(id);
      await bench.stage.log.commit();
      await reopen();
      const acked = bench.stage.loaded.map((stream) => [stream.id, [...stream.acked]]);
      assert.deepEqual(acked, [[other, [['ada', `${EPOCH}.1`]]]]);
    });

    it('forgets what was not committed', async () => {
      const id = create();
      append(id, 1, [10]);
      await bench.stage.log.commit();
      append(id, 2, [10]);
      create();
      bench.stage.log.close(id);
      await reopen();
      assert.equal(bench.stage.loaded.length, 1);
      assert.equal(bench.stage.loaded[0]?.head, 1);
      assert.equal(bench.stage.loaded[0]?.closed, false);
    });

    it('shows no event before its commit, and at once after it (I4)', async () => {
      const id = create();
      append(id, 1, [10]);
      assert.equal(bench.stage.reader.read(id, after(0, READ_BYTES)), null);
      await bench.stage.log.commit();
      assert.equal(bench.stage.reader.read(id, after(0, READ_BYTES))?.lastSeq, 1);
      append(id, 2, [10]);
      assert.equal(bench.stage.reader.read(id, after(1, READ_BYTES)), null);
      await bench.stage.log.commit();
      assert.equal(bench.stage.reader.read(id, after(1, READ_BYTES))?.lastSeq, 2);
    });

    it('reads whole frames after the cursor, as many as fit, but at least one (I1)', async () => {
      const id = create();
      const sizes = Array.from({ length: 300 }, (_, index) => (index * 37) % 900);
      for (let at = 0; at < sizes.length; at += 7) {
        append(id, at + 1, sizes.slice(at, at + 7));
        await bench.stage.log.commit();
      }
      for (const bytesMax of [1, 50, 1000, 20_000, 10_000_000]) {
        for (const afterSeq of [0, 1, 6, 7, 100, 298, 299]) {
          const run = bench.stage.reader.read(id, after(afterSeq, bytesMax));
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
      await bench.stage.log.commit();
      for (const afterSeq of [0, 1]) {
        const { frames } = bench.stage.reader.read(id, after(afterSeq, READ_BYTES)) ?? assert.fail();
        assert.equal(frames.byteOffset, 0);
        assert.equal(frames.buffer.byteLength, frames.length);
        structuredClone(frames, { transfer: [frames.buffer as ArrayBuffer] });
      }
      assert.equal(bench.stage.reader.read(id, after(0, READ_BYTES))?.lastSeq, 3);
    });

    it('has nothing at the head, beyond it, below the floor, and of streams it does not know', async () => {
      const id = create();
      append(id, 1, sizesOf(9, 10));
      await bench.stage.log.commit();
      assert.equal(bench.stage.reader.read(id, after(9, READ_BYTES)), null);
      assert.equal(bench.stage.reader.read(id, after(100, READ_BYTES)), null);
      assert.equal(bench.stage.reader.read(id, after(Number.MAX_SAFE_INTEGER, READ_BYTES)), null);
      assert.equal(bench.stage.reader.read(id, after(3, READ_BYTES, 5)), null);
      assert.equal(bench.stage.reader.read(id, after(4, READ_BYTES, 5))?.firstSeq, 5);
      assert.equal(bench.stage.reader.read(id + 1, after(0, READ_BYTES)), null);
    });

    it('copies what is appended', async () => {
      const id = create();
      const run = runOf(id, 1, [100]);
      bench.stage.log.append(id, run, NOW_MS);
      run.frames.fill(0);
      await bench.stage.log.commit();
      assert.ok(readAll(bench.stage, id, 0, READ_BYTES).frames.equals(frameOf(id, 1, 100)));
    });

    it('keeps frames and runs larger than a megabyte', async () => {
      const id = create();
      const sizes = [3_000_000, 10, ...sizesOf(4000, 700), 1_200_000];
      append(id, 1, sizes);
      await bench.stage.log.commit();
      append(id, sizes.length + 1, [5, 2_000_000]);
      await bench.stage.log.commit();
      await reopen();
      const all = [...sizes, 5, 2_000_000].map((size, index) => frameOf(id, index + 1, size));
      assert.ok(readAll(bench.stage, id, 0, READ_BYTES).frames.equals(Buffer.concat(all)));
      assert.equal(bench.stage.reader.read(id, after(0, READ_BYTES))?.lastSeq, 1);
    });

    it('keeps streams apart', async () => {
      const ids = Array.from({ length: 20 }, () => create());
      for (let round = 0; round < 5; round++) {
        for (const id of ids) append(id, round * (id + 1) + 1, sizesOf(id + 1, 30));
        await bench.stage.log.commit();
      }
      await reopen();
      for (const id of ids) {
        const expected = Array.from({ length: 5 * (id + 1) }, (_, index) => frameOf(id, index + 1, 30));
        assert.ok(readAll(bench.stage, id, 0, 500).frames.equals(Buffer.concat(expected)));
      }
    });

    it('remembers that a stream was closed', async () => {
      const id = create();
      append(id, 1, [1]);
      bench.stage.log.close(id);
      await bench.stage.log.commit();
      await reopen();
      assert.equal(bench.stage.loaded[0]?.closed, true);
      assert.equal(bench.stage.loaded[0]?.head, 1);
    });

    it('forgets a removed stream, and finds its events with no other', async () => {
      const id = create();
      const other = create();
      append(id, 1, sizesOf(3000, 100));
      append(other, 1, [1]);
      await bench.stage.log.commit();
      bench.stage.log.remove(id);
      await bench.stage.log.commit();
      assert.equal(
        bench.stage.reader.read(id, after(0, READ_BYTES)) === null || bench.stage.log.hasPendingDeletes,
        true,
      );
      await reopen();
      assert.deepEqual(
        bench.stage.loaded.map((stream) => stream.id),
        [other],
      );
      const next = create();
      assert.notEqual(next, id);
      await settleDeletes(bench.stage.log);
      assert.equal(bench.stage.reader.read(id, after(0, READ_BYTES)), null);
      assert.equal(readAll(bench.stage, other, 0, READ_BYTES).lastSeq, 1);
    });

    it('takes a stream that comes and goes between two commits', async () => {
      const id = create();
      append(id, 1, [10]);
      bench.stage.log.remove(id);
      await bench.stage.log.commit();
      await settleDeletes(bench.stage.log);
      assert.equal(bench.stage.reader.read(id, after(0, READ_BYTES)), null);
      await reopen();
      assert.deepEqual(bench.stage.loaded, []);
    });

    it('gives another id each time, above those of all streams', async () => {
      const ids = [create(), create(), create()];
      assert.equal(new Set(ids).size, 3);
      await bench.stage.log.commit();
      await reopen();
      assert.ok(bench.stage.log.nextId() > Math.max(...ids));
    });

    it('says what it occupies', async () => {
      const id = create();
      append(id, 1, [1_000_000]);
      await bench.stage.log.commit();
      assert.ok(bench.stage.log.sizeBytes() >= 1_000_000);
      await bench.stage.log.sync();
    });

    it('refuses a run that does not follow (I1), an id that is taken (I3), and what comes after the end', async () => {
      const id = create();
      append(id, 1, [1, 1]);
      assert.throws(() => append(id, 2, [1]), { name: 'InvariantError' });
      assert.throws(() => append(id, 4, [1]), { name: 'InvariantError' });
      const taken = { id, name: 'other', epoch: EPOCH, config: configOf() };
      assert.throws(() => bench.stage.log.create(taken), { name: 'InvariantError' });
      bench.stage.log.close(id);
      assert.throws(() => append(id, 3, [1]), { name: 'InvariantError' });
      assert.throws(() => bench.stage.log.floor(id + 1), { name: 'InvariantError' });
    });
  });
}
