import assert from 'node:assert/strict';
import { afterEach, beforeEach, describe, it } from 'node:test';
import { DIGEST_BYTES, KEY } from '#gapless/core/producer-record.js';
import { LogCorruption } from '#gapless/storage/event-log.js';
import { storedBlocks } from '#gapless/storage/lmdb/block-scan.js';
import { LmdbReader } from '#gapless/storage/lmdb/lmdb-reader.js';
import { type LmdbStore, openStore } from '#gapless/storage/lmdb/lmdb-store.js';
import { openLmdbLog } from '#gapless/storage/lmdb/open-lmdb-log.js';
import {
  blockKey,
  blocksEnd,
  blocksFrom,
  producerKey,
  streamKey,
  subscriberKey,
} from '#gapless/storage/lmdb/store-keys.js';
import { decodeRecord, encodeRecord } from '#gapless/storage/lmdb/stream-record.js';
import { encodeAcked } from '#gapless/storage/lmdb/subscriber-record.js';
import { describeLog } from './storage-behaviour.js';
import { describeLogProducers, recordOf as producerRecordOf } from './storage-producers-behaviour.js';
import { describeLogRetention } from './storage-retention-behaviour.js';
import {
  after,
  configOf,
  EPOCH,
  type LmdbStage,
  lmdbStage,
  readAll,
  runOf,
  settleDeletes,
  sizesOf,
} from './storage-stage.js';

const READ_BYTES = 64 * 1024;

describeLog('a log in LMDB', () => lmdbStage());
describeLogRetention('what a log in LMDB keeps', () => lmdbStage());
describeLogProducers('whom a log in LMDB remembers', () => lmdbStage());

describe('the store of a log in LMDB', () => {
  let stage: LmdbStage;
  /** The same store, through which a test sees and breaks what is stored. */
  let store: LmdbStore;

  beforeEach(() => {
    stage = lmdbStage();
    store = openStore(stage.directory, { readOnly: false });
    for (const id of [1, 2]) stage.log.create({ id, name: `stream-${id}`, epoch: EPOCH, config: configOf() });
  });
  afterEach(async () => {
    await store.root.close();
    await stage.dispose();
  });

  async function append(id: number, firstSeq: number, sizes: readonly number[]): Promise<void> {
    stage.log.append(id, runOf(id, firstSeq, sizes), 1000 * firstSeq);
    await stage.log.commit();
  }

  function blocksOf(id: number): { firstSeq: number; lastSeq: number }[] {
    store.root.resetReadTxn();
    return [...storedBlocks(store, id, 0)].map(({ firstSeq, lastSeq }) => ({ firstSeq, lastSeq }));
  }

  function recordOf(id: number): ReturnType<typeof decodeRecord> | null {
    store.root.resetReadTxn();
    const text = store.streams.get(streamKey(id));
    return text === undefined ? null : decodeRecord(id, text, 'here');
  }

  it('3.4 refuses a producer that is not as it was written, or is that of another stream', async () => {
    stage.log.append(1, runOf(1, 1, [10]), 0);
    stage.log.producers.put(1, KEY, producerRecordOf(KEY, 7, 1));
    await stage.log.commit();
    store.root.resetReadTxn();
    const key = producerKey(1, KEY, producerRecordOf(KEY, 7, 1).subarray(0, DIGEST_BYTES));
    const value = store.producers.get(key);
    assert.ok(value !== undefined);
    const turned = Buffer.from(value);
    turned[40] = (turned[40] ?? 0) ^ 1;
    const elsewhere = Buffer.from(key);
    elsewhere.writeUInt32BE(2);
    for (const [at, wrong] of [
      [key, turned],
      [elsewhere, value],
      [key, value.subarray(0, -1)],
    ] as const) {
      await store.producers.put(at, wrong);
      assert.throws(
        () => [...openLmdbLog({ directory: stage.directory, syncEachCommit: false }).load()],
        LogCorruption,
      );
      await store.producers.remove(at);
    }
  });

  it('merges events that come one at a time into blocks of some size', async () => {
    for (let seq = 1; seq <= 100; seq++) await append(1, seq, [1000]);
    const blocks = blocksOf(1);
    assert.ok(blocks.length >= 6 && blocks.length <= 8, `${blocks.length} blocks`);
  });

  it('deletes blocks below the floor, and never the last one of a stream that lives (I3)', async () => {
    for (let seq = 1; seq <= 100; seq += 10) await append(1, seq, sizesOf(10, 2000));
    stage.log.trim(1, 45);
    assert.equal(blocksOf(1).length, 10);
    await stage.log.commit();
    await settleDeletes(stage.log);
    assert.equal(blocksOf(1)[0]?.firstSeq, 41);
    stage.log.trim(1, 101);
    await stage.log.commit();
    await settleDeletes(stage.log);
    assert.deepEqual(blocksOf(1), [{ firstSeq: 91, lastSeq: 100 }]);
    assert.equal(stage.reader.read(1, after(95, READ_BYTES, 101)), null);
  });

  it('deletes a bounded number of blocks with each commit, and goes on after a restart', async () => {
    stage.log.append(1, runOf(1, 1, sizesOf(1400, 60_000)), 0);
    await append(2, 1, [10]);
    assert.equal(blocksOf(1).length, 1400);
    stage.log.trim(1, 1400);
    await stage.log.commit();
    const left = blocksOf(1).length;
    assert.ok(left < 1400 && left > 800, `${left} blocks are left`);
    assert.equal(stage.log.hasPendingDeletes, true);
    await store.root.close();
    stage = (await stage.reopen()) as typeof stage;
    store = openStore(stage.directory, { readOnly: false });
    assert.equal(stage.log.hasPendingDeletes, true);
    await settleDeletes(stage.log);
    assert.deepEqual(blocksOf(1), [{ firstSeq: 1400, lastSeq: 1400 }]);
    assert.equal(readAll(stage, 1, 1399, READ_BYTES).lastSeq, 1400);
  });

  it('keeps a tombstone, and with it the id, until the last block of a removed stream is gone (I3)', async () => {
    stage.log.append(2, runOf(2, 1, sizesOf(1100, 60_000)), 0);
    await append(1, 1, [10]);
    stage.log.remove(2);
    await stage.log.commit();
    assert.deepEqual(recordOf(2), { id: 2, removed: true });
    await store.root.close();
    stage = (await stage.reopen()) as typeof stage;
    store = openStore(stage.directory, { readOnly: false });
    assert.deepEqual(
      stage.loaded.map(({ id }) => id),
      [1],
    );
    assert.equal(stage.log.nextId(), 3);
    const taken = { id: 2, name: 'again', epoch: EPOCH, config: configOf() };
    assert.throws(() => stage.log.create(taken), { name: 'InvariantError' });
    await settleDeletes(stage.log);
    assert.equal(recordOf(2), null);
    assert.deepEqual(blocksOf(2), []);
  });

  it('is not written to by a floor that moves inside of a block, but for the record', async () => {
    await append(1, 1, sizesOf(50, 10));
    const before = blocksOf(1);
    stage.log.trim(1, 20);
    await stage.log.commit();
    await settleDeletes(stage.log);
    assert.deepEqual(blocksOf(1), before);
    const record = recordOf(1);
    assert.ok(record !== null && !('removed' in record));
    assert.equal(record.floor, 20);
  });

  it('is refused on a read where a block is missing, and nothing is made up for it (I1)', async () => {
    for (let seq = 1; seq <= 50; seq += 10) await append(1, seq, sizesOf(10, 2000));
    const keys = [...store.blocks.getKeys({ start: blocksFrom(1, 21), end: blocksFrom(1, 22) })] as Buffer[];
    assert.equal(keys.length, 1);
    for (const key of keys) store.blocks.removeSync(key);
    assert.equal(stage.reader.read(1, after(0, 30_000))?.lastSeq, 14);
    for (const [afterSeq, bytesMax] of [
      [0, 1_000_000],
      [20, 10],
      [25, 10],
    ] as const) {
      assert.throws(
        () => stage.reader.read(1, after(afterSeq, bytesMax)),
        (error) =>
          error instanceof LogCorruption && /events\.mdb, stream 1.*restore the file/.test(error.message),
      );
    }
    assert.equal(stage.reader.read(1, after(30, 30_000))?.firstSeq, 31);
    assert.ok(stage.reader instanceof LmdbReader);
    assert.equal([...stage.reader.verify()].length, 1);
  });

  it('is refused where a block is that of another stream, or of another place', async () => {
    await append(1, 1, sizesOf(10, 2000));
    await append(2, 1, sizesOf(10, 2000));
    const [theirs] = [...store.blocks.getRange({ start: blocksFrom(2, 0), end: blocksEnd(2) })];
    const [ours] = [...store.blocks.getKeys({ start: blocksFrom(1, 0), end: blocksEnd(1) })] as Buffer[];
    assert.ok(theirs !== undefined && ours !== undefined);
    store.blocks.putSync(ours, theirs.value);
    assert.throws(() => stage.reader.read(1, after(0, READ_BYTES)), /the block says that it is another/);
    store.blocks.putSync(blockKey(2, { firstSeq: 11, position: 30_000, openedAtMs: 0 }), theirs.value);
    assert.throws(() => stage.reader.read(2, after(5, 1_000_000)), LogCorruption);
  });

  it('is refused at the start where a stream has lost its end', async () => {
    await append(1, 1, sizesOf(10, 2000));
    stage.log.trim(1, 8);
    await stage.log.commit();
    for (const key of store.blocks.getKeys({ start: blocksFrom(1, 0), end: blocksEnd(1) })) {
      store.blocks.removeSync(key as Buffer);
    }
    await store.root.close();
    await assert.rejects(stage.reopen(), /its events begin with 8 and end with 0/);
    stage = lmdbStage();
    store = openStore(stage.directory, { readOnly: false });
  });

  it('is refused at the start where what a subscriber has was changed, or is that of another', async () => {
    for (const [id, name, text] of [
      [1, 'ada', encodeAcked(1, 'ada', `${EPOCH}.2`).replace('.2', '.3')],
      [1, 'ada', encodeAcked(1, 'bob', `${EPOCH}.2`)],
      [1, 'ada', encodeAcked(2, 'ada', `${EPOCH}.2`)],
      [1, 'ada', encodeAcked(1, 'ada', 'nonsense')],
      [9, 'ada', encodeAcked(9, 'ada', `${EPOCH}.2`)],
    ] as const) {
      await stage.log.commit();
      store.streams.putSync(subscriberKey(id, name), text);
      await store.root.close();
      await assert.rejects(stage.reopen(), LogCorruption, text);
      stage = lmdbStage();
      store = openStore(stage.directory, { readOnly: false });
      stage.log.create({ id: 1, name: 'stream-1', epoch: EPOCH, config: configOf() });
    }
  });

  it('is refused at the start where a record was changed', async () => {
    await append(1, 1, [10]);
    const text = store.streams.get(streamKey(1)) ?? assert.fail();
    store.streams.putSync(streamKey(1), text.replace('stream-1', 'stream-7'));
    await store.root.close();
    await assert.rejects(stage.reopen(), /stream 1: the checksum of the stream's record does not match/);
    stage = lmdbStage();
    store = openStore(stage.directory, { readOnly: false });
    store.streams.putSync(streamKey(4), encodeRecord({ id: 5, removed: true }));
    await store.root.close();
    await assert.rejects(stage.reopen(), /stream 4: the record is that of stream 5/);
    stage = lmdbStage();
    store = openStore(stage.directory, { readOnly: false });
  });
});
