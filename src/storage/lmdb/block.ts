/**
 * A run of frames as it is stored: a header, then the frames as they go on the wire.
 *
 * BLOCK, little-endian
 *   offset size type field
 *        0    4 u32  magic           BLOCK_MAGIC
 *        4    4 u32  headerChecksum  CRC-32 of the header from offset 8 on
 *        8    4 u32  framesChecksum  CRC-32 of the frames
 *       12    4 u32  framesBytes
 *       16    4 u32  id              of the stream
 *       20    8 f64  firstSeq
 *       28    8 f64  lastSeq
 *       36    8 f64  position        bytes of frames that were appended to the stream before this block
 *       44    8 f64  openedAtMs      when the oldest event in it was appended
 *       52    8 f64  writtenAtMs     when the newest event in it was appended
 *       60    n u8[] frames
 *
 * The store has no checksums of its own, and a bit that turned in a frame would be somebody's event. The header has one
 * for itself, so that where a stream ends is known for sure without reading its frames.
 */

import { crc32 } from 'node:zlib';
import { LogCorruption, type LogId } from '../event-log.js';

/** What a block says of itself. */
export interface BlockHeader {
  readonly id: LogId;
  readonly firstSeq: number;
  readonly lastSeq: number;
  readonly position: number;
  readonly openedAtMs: number;
  readonly writtenAtMs: number;
  readonly framesBytes: number;
}

/** Begins with "GPB". What the store takes for an instruction to itself begins with 01 01 01. */
const BLOCK_MAGIC = 0x31_42_50_47;
const MAGIC_OFFSET = 0;
const HEADER_CHECKSUM_OFFSET = 4;
const FRAMES_CHECKSUM_OFFSET = 8;
const FRAMES_BYTES_OFFSET = 12;
const ID_OFFSET = 16;
const FIRST_SEQ_OFFSET = 20;
const LAST_SEQ_OFFSET = 28;
const POSITION_OFFSET = 36;
const OPENED_AT_OFFSET = 44;
const WRITTEN_AT_OFFSET = 52;
export const BLOCK_HEADER_BYTES = 60;

/** What an encoder keeps for the next block. */
const KEPT_BYTES_MAX = 128 * 1024;

/** Encodes one block after the other into the same memory. */
export class BlockEncoder {
  #buffer = Buffer.alloc(0);

  /** @param parts the frames, in pieces. What it returns is valid until the next call. */
  encode(header: BlockHeader, parts: readonly Uint8Array[]): Buffer {
    const block = this.#reserve(BLOCK_HEADER_BYTES + header.framesBytes);
    let at = BLOCK_HEADER_BYTES;
    for (const part of parts) {
      block.set(part, at);
      at += part.length;
    }
    writeHeader(block, header);
    return block;
  }

  #reserve(length: number): Buffer {
    // One frame can be far larger than a block; that much is not kept.
    if (length > KEPT_BYTES_MAX) return Buffer.allocUnsafeSlow(length);
    if (length > this.#buffer.length) this.#buffer = Buffer.allocUnsafeSlow(KEPT_BYTES_MAX);
    return this.#buffer.subarray(0, length);
  }
}

function writeHeader(block: Buffer, header: BlockHeader): void {
  block.writeUInt32LE(BLOCK_MAGIC, MAGIC_OFFSET);
  block.writeUInt32LE(crc32(block.subarray(BLOCK_HEADER_BYTES)), FRAMES_CHECKSUM_OFFSET);
  block.writeUInt32LE(header.framesBytes, FRAMES_BYTES_OFFSET);
  block.writeUInt32LE(header.id, ID_OFFSET);
  block.writeDoubleLE(header.firstSeq, FIRST_SEQ_OFFSET);
  block.writeDoubleLE(header.lastSeq, LAST_SEQ_OFFSET);
  block.writeDoubleLE(header.position, POSITION_OFFSET);
  block.writeDoubleLE(header.openedAtMs, OPENED_AT_OFFSET);
  block.writeDoubleLE(header.writtenAtMs, WRITTEN_AT_OFFSET);
  block.writeUInt32LE(headerChecksum(block), HEADER_CHECKSUM_OFFSET);
}

/**
 * The header of a block, which is checked; its frames are not looked at.
 *
 * @param where names the block for whoever has to find it.
 */
export function decodeHeader(block: Buffer, where: string): BlockHeader {
  if (block.length <= BLOCK_HEADER_BYTES || block.readUInt32LE(MAGIC_OFFSET) !== BLOCK_MAGIC) {
    throw new LogCorruption(`${where}: not a block of events`);
  }
  if (block.readUInt32LE(HEADER_CHECKSUM_OFFSET) !== headerChecksum(block)) {
    throw new LogCorruption(`${where}: the checksum of the block's header does not match`);
  }
  const framesBytes = block.readUInt32LE(FRAMES_BYTES_OFFSET);
  if (framesBytes !== block.length - BLOCK_HEADER_BYTES) {
    throw new LogCorruption(`${where}: the block is not as long as it says`);
  }
  return {
    id: block.readUInt32LE(ID_OFFSET),
    firstSeq: block.readDoubleLE(FIRST_SEQ_OFFSET),
    lastSeq: block.readDoubleLE(LAST_SEQ_OFFSET),
    position: block.readDoubleLE(POSITION_OFFSET),
    openedAtMs: block.readDoubleLE(OPENED_AT_OFFSET),
    writtenAtMs: block.readDoubleLE(WRITTEN_AT_OFFSET),
    framesBytes,
  };
}

/** The frames of a block, which are checked; a view on `block`. The header was decoded before. */
export function decodeFrames(block: Buffer, where: string): Buffer {
  const frames = block.subarray(BLOCK_HEADER_BYTES);
  if (block.readUInt32LE(FRAMES_CHECKSUM_OFFSET) !== crc32(frames)) {
    throw new LogCorruption(`${where}: the checksum of the events does not match`);
  }
  return frames;
}

function headerChecksum(block: Buffer): number {
  return crc32(block.subarray(FRAMES_CHECKSUM_OFFSET, BLOCK_HEADER_BYTES));
}
