import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { crc32 } from 'node:zlib';
import { LogCorruption } from '#gapless/storage/event-log.js';
import { BlockEncoder, type BlockHeader, decodeFrames, decodeHeader } from '#gapless/storage/lmdb/block.js';
import { runOf } from './storage-stage.js';

const { frames } = runOf(7, 41, [10, 20, 30]);
const header: BlockHeader = {
  id: 7,
  firstSeq: 41,
  lastSeq: 43,
  position: 12_345,
  openedAtMs: 1_750_000_000_000,
  writtenAtMs: 1_750_000_000_500,
  framesBytes: frames.length,
};

function encode(): Buffer {
  return new BlockEncoder().encode(header, [frames.subarray(0, 50), frames.subarray(50)]);
}

describe('a block', () => {
  it('stands in its bytes as its table says', () => {
    const block = encode();
    assert.equal(block.length, 60 + frames.length);
    assert.equal(block.toString('latin1', 0, 4), 'GPB1');
    assert.equal(block.readUInt32LE(4), crc32(block.subarray(8, 60)));
    assert.equal(block.readUInt32LE(8), crc32(frames));
    assert.equal(block.readUInt32LE(12), frames.length);
    assert.equal(block.readUInt32LE(16), 7);
    assert.equal(block.readDoubleLE(20), 41);
    assert.equal(block.readDoubleLE(28), 43);
    assert.equal(block.readDoubleLE(36), 12_345);
    assert.equal(block.readDoubleLE(44), 1_750_000_000_000);
    assert.equal(block.readDoubleLE(52), 1_750_000_000_500);
    assert.ok(block.subarray(60).equals(frames));
  });

  it('comes back as it was, frames in one piece', () => {
    const block = encode();
    assert.deepEqual(decodeHeader(block, 'here'), header);
    assert.ok(decodeFrames(block, 'here').equals(frames));
  });

  it('is refused for every bit that turned, and for every byte that is missing or too many', () => {
    const decode = (block: Buffer) => {
      decodeHeader(block, 'stream 7');
      decodeFrames(block, 'stream 7');
    };
    const refused = (error: unknown) =>
      error instanceof LogCorruption && error.message.startsWith('stream 7: ');
    for (let bit = 0; bit < encode().length * 8; bit++) {
      const block = encode();
      block[bit >> 3] = (block[bit >> 3] ?? 0) ^ (1 << (bit & 7));
      assert.throws(() => decode(block), refused, `bit ${bit}`);
    }
    for (let bytes = 0; bytes < encode().length; bytes++) {
      assert.throws(() => decode(encode().subarray(0, bytes)), refused);
    }
    assert.throws(() => decode(Buffer.concat([encode(), Buffer.from('\n')])), refused);
  });

  it('tells by its header alone where it ends: frames are not looked at for that', () => {
    const block = encode();
    block.fill(0, 60);
    assert.equal(decodeHeader(block, 'here').lastSeq, 43);
    assert.throws(() => decodeFrames(block, 'here'), LogCorruption);
  });
});
