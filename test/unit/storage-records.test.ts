import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { crc32 } from 'node:zlib';
import fc from 'fast-check';
import { LogCorruption } from '#gapless/storage/event-log.js';
import {
  blockKey,
  blocksEnd,
  blocksFrom,
  idOfKey,
  startOfKey,
  streamKey,
} from '#gapless/storage/lmdb/store-keys.js';
import { decodeRecord, encodeRecord, type StreamRecord } from '#gapless/storage/lmdb/stream-record.js';
import { configOf, EPOCH } from './storage-stage.js';

const record: StreamRecord = {
  id: 5,
  name: 'orders~2:x',
  epoch: EPOCH,
  config: configOf({ events: 100 }),
  closed: false,
  floor: 17,
};

function sealed(json: string): string {
  return `${crc32(json).toString(16).padStart(8, '0')} ${json}`;
}

describe('the record of a stream', () => {
  it('comes back as it was, and so does a tombstone', () => {
    for (const one of [record, { id: 5, removed: true } as const]) {
      assert.deepEqual(decodeRecord(5, encodeRecord(one), 'here'), one);
    }
  });

  it('is refused for every character that changed', () => {
    const text = encodeRecord(record);
    for (let at = 0; at < text.length; at++) {
      const changed = `${text.slice(0, at)}${text[at] === '1' ? '2' : '1'}${text.slice(at + 1)}`;
      assert.throws(() => decodeRecord(5, changed, 'here'), LogCorruption);
      assert.throws(() => decodeRecord(5, text.slice(0, at), 'here'), LogCorruption);
    }
  });

  it('is refused under the id of another, and when it is not one at all', () => {
    assert.throws(
      () => decodeRecord(6, encodeRecord(record), 'stream 6'),
      /stream 6: the record is that of stream 5/,
    );
    for (const json of [
      '',
      '[]',
      '{"id":5}',
      JSON.stringify({ ...record, floor: 0 }),
      JSON.stringify({ ...record, x: 1 }),
    ]) {
      assert.throws(() => decodeRecord(5, sealed(json), 'here'), LogCorruption);
    }
  });
});

const ids = fc.integer({ min: 0, max: 0xffff_ffff });
const whole = fc.oneof(fc.maxSafeNat(), fc.nat(1000), fc.constantFrom(2 ** 32 - 1, 2 ** 32, 2 ** 32 + 1));
const starts = fc.record({ firstSeq: whole, position: whole, openedAtMs: whole }, { noNullPrototype: true });

describe('keys of the store', () => {
  it('come back as they were', () => {
    fc.assert(
      fc.property(ids, starts, (id, start) => {
        assert.equal(idOfKey(streamKey(id)), id);
        assert.equal(idOfKey(blockKey(id, start)), id);
        assert.deepEqual(startOfKey(blockKey(id, start)), start);
      }),
    );
  });

  it('are ordered by stream, then by first seq, with their bounds in between', () => {
    fc.assert(
      fc.property(ids, ids, starts, starts, whole, (id, otherId, start, other, seq) => {
        const key = blockKey(id, start);
        const order = Math.sign(id - otherId) || Math.sign(start.firstSeq - other.firstSeq);
        if (order !== 0) assert.equal(Buffer.compare(key, blockKey(otherId, other)), order);
        assert.equal(Buffer.compare(blocksFrom(id, seq), key) < 0, seq <= start.firstSeq);
        assert.ok(Buffer.compare(key, blocksEnd(id)) < 0);
        if (id < 0xffff_ffff) assert.ok(Buffer.compare(blocksEnd(id), blocksFrom(id + 1, 0)) < 0);
      }),
    );
  });
});
