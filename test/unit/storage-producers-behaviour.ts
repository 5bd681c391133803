import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import {
  DIGEST_BYTES,
  eachRecord,
  KEY,
  newestPlaceOf,
  PRODUCER,
  RECORD_BYTES,
  RECORD_PLACES_OFFSET,
  type RecordKind,
} from '#gapless/core/producer-record.js';
import { useLog } from './storage-bench.js';
import { type LogStage, settleDeletes } from './storage-stage.js';

/** A record of somebody, whose newest publish ended with `lastSeq`. */
export function recordOf(kind: RecordKind, who: number, lastSeq: number): Uint8Array {
  const record = Buffer.alloc(RECORD_BYTES[kind]);
  record.writeUInt32LE(who);
  record.writeDoubleLE(lastSeq, RECORD_PLACES_OFFSET + 8);
  return record;
}

export function digestOf(record: Uint8Array): Uint8Array {
  return record.slice(0, DIGEST_BYTES);
}

/** What every log remembers of publishers, whatever is behind it. */
export function describeLogProducers(name: string, open: () => LogStage): void {
  describe(name, () => {
    const bench = useLog(open);
    const { create, append, reopen } = bench;

    /** Who is remembered of the only stream, with the place of each one's newest publish. */
    function remembered(kind: RecordKind): [who: number, lastSeq: number][] {
      const { producers } = bench.stage.loaded[0] ?? {};
      const records = kind === PRODUCER ? producers?.producers : producers?.keys;
      return [...eachRecord(records ?? new Uint8Array(0), kind)]
        .map((record): [number, number] => [Buffer.from(record).readUInt32LE(), newestPlaceOf(record, kind)])
        .sort(([a], [b]) => a - b);
    }

    it('3.4 brings back who published, as it was committed last', async () => {
      const id = create();
      append(id, 1, [10, 10]);
      const { producers } = bench.stage.log;
      producers.put(id, PRODUCER, Buffer.concat([recordOf(PRODUCER, 1, 1), recordOf(PRODUCER, 2, 2)]));
      producers.put(id, KEY, recordOf(KEY, 1, 2));
      await bench.stage.log.commit();
      append(id, 3, [10]);
      producers.put(id, PRODUCER, recordOf(PRODUCER, 1, 3));
      await bench.stage.log.commit();
      await reopen();
      assert.deepEqual(remembered(PRODUCER), [
        [1, 3],
        [2, 2],
      ]);
      assert.deepEqual(remembered(KEY), [[1, 2]]);
      assert.equal(bench.stage.loaded[0]?.head, 3);
    });

    it('3.4 remembers nobody whose events were not committed', async () => {
      const id = create();
      append(id, 1, [10]);
      bench.stage.log.producers.put(id, PRODUCER, recordOf(PRODUCER, 1, 1));
      await bench.stage.log.commit();
      append(id, 2, [10]);
      bench.stage.log.producers.put(id, PRODUCER, recordOf(PRODUCER, 1, 2));
      bench.stage.log.producers.put(id, KEY, recordOf(KEY, 9, 2));
      await reopen();
      assert.deepEqual(remembered(PRODUCER), [[1, 1]]);
      assert.deepEqual(remembered(KEY), []);
    });

    it('3.4 forgets whom it is told to, but not one who has come back meanwhile', async () => {
      const id = create();
      const { producers } = bench.stage.log;
      const records = [1, 2, 3].map((who) => recordOf(KEY, who, who));
      producers.put(id, KEY, Buffer.concat(records));
      await bench.stage.log.commit();
      producers.drop(id, KEY, Buffer.concat(records.slice(0, 2).map(digestOf)));
      producers.put(id, KEY, recordOf(KEY, 2, 7));
      await bench.stage.log.commit();
      await reopen();
      assert.deepEqual(remembered(KEY), [
        [2, 7],
        [3, 3],
      ]);
      bench.stage.log.producers.drop(id, KEY, Buffer.concat(records.map(digestOf)));
      await bench.stage.log.commit();
      await reopen();
      assert.equal(bench.stage.loaded[0]?.producers, undefined);
    });

    it('3.4 forgets all of a stream that is removed, staged or committed, however many they are', async () => {
      const ids = [create(), create()];
      const { producers } = bench.stage.log;
      for (const id of ids) {
        for (let who = 1; who <= 1000; who++) producers.put(id, KEY, recordOf(KEY, who, who));
      }
      await bench.stage.log.commit();
      const [removed = 0, other = 0] = ids;
      producers.put(removed, PRODUCER, recordOf(PRODUCER, 1, 1));
      bench.stage.log.remove(removed);
      await bench.stage.log.commit();
      await reopen();
      assert.deepEqual(
        bench.stage.loaded.map(({ id }) => id),
        [other],
      );
      assert.equal(remembered(KEY).length, 1000);
      await settleDeletes(bench.stage.log);
      await reopen();
      assert.equal(remembered(KEY).length, 1000);
    });
  });
}
