/**
 * Keys of the store. Big-endian, so that their order as bytes is the order of their fields.
 *
 * STREAM KEY               BLOCK KEY                   PRODUCER KEY
 *   offset size field        offset size field           offset size field
 *        0    4 id u32            0    4 id u32               0    4 id u32
 *                                 4    8 firstSeq u64         4    1 kind u8
 *                                12    8 position u64         5   16 digest
 *                                20    8 openedAtMs u64
 *
 * SUBSCRIBER KEY, after that of its stream and before that of the next
 *   offset size field
 *        0    4 id u32
 *        4    n name, ASCII
 *
 * Blocks of a stream lie side by side, in order. `position` and `openedAtMs` repeat the block's header: what retention
 * has to know of a block it finds without touching the block, which may be on cold pages.
 */

import { DIGEST_BYTES, KEY, PRODUCER, type RecordKind } from '../../core/producer-record.js';
import type { LogId } from '../event-log.js';

/** What a block's key says of it. */
export interface BlockStart {
  readonly firstSeq: number;
  readonly position: number;
  readonly openedAtMs: number;
}

export const ID_MAX = 0xffff_ffff;
export const STREAM_KEY_BYTES = 4;
export const BLOCK_KEY_BYTES = 28;
export const PRODUCER_KEY_BYTES = 21;

const KIND_OFFSET = 4;
const DIGEST_OFFSET = 5;
const FIRST_SEQ_OFFSET = 4;
const POSITION_OFFSET = 12;
const OPENED_AT_OFFSET = 20;

export function streamKey(id: LogId): Buffer {
  const key = Buffer.allocUnsafe(STREAM_KEY_BYTES);
  key.writeUInt32BE(id);
  return key;
}

export function subscriberKey(id: LogId, subscriber: string): Buffer {
  return Buffer.concat([streamKey(id), Buffer.from(subscriber, 'latin1')]);
}

/** The name in a subscriber's key; null in a stream's. */
export function subscriberOfKey(key: Buffer): string | null {
  return key.length === STREAM_KEY_BYTES ? null : key.toString('latin1', STREAM_KEY_BYTES);
}

export function blockKey(id: LogId, start: BlockStart): Buffer {
  const key = Buffer.allocUnsafe(BLOCK_KEY_BYTES);
  key.writeUInt32BE(id);
  writeUint64(key, start.firstSeq, FIRST_SEQ_OFFSET);
  writeUint64(key, start.position, POSITION_OFFSET);
  writeUint64(key, start.openedAtMs, OPENED_AT_OFFSET);
  return key;
}

export function producerKey(id: LogId, kind: RecordKind, digest: Uint8Array): Buffer {
  const key = Buffer.allocUnsafe(DIGEST_OFFSET + DIGEST_BYTES);
  key.writeUInt32BE(id);
  key[KIND_OFFSET] = kind;
  key.set(digest, DIGEST_OFFSET);
  return key;
}

export function kindOfKey(key: Buffer): RecordKind {
  return key[KIND_OFFSET] === KEY ? KEY : PRODUCER;
}

/** All producer keys of a stream. */
export function producersRange(id: LogId): { start: Buffer; end: Buffer } {
  const end = Buffer.alloc(PRODUCER_KEY_BYTES + 1, 0xff);
  end.writeUInt32BE(id);
  return { start: streamKey(id), end };
}

/** Stands before the block that begins with `firstSeq`, and after all that begin earlier. */
export function blocksFrom(id: LogId, firstSeq: number): Buffer {
  const key = Buffer.allocUnsafe(POSITION_OFFSET);
  key.writeUInt32BE(id);
  writeUint64(key, firstSeq, FIRST_SEQ_OFFSET);
  return key;
}

/** Stands after all blocks of a stream. */
export function blocksEnd(id: LogId): Buffer {
  const key = Buffer.alloc(POSITION_OFFSET, 0xff);
  key.writeUInt32BE(id);
  return key;
}

export function idOfKey(key: Buffer): LogId {
  return key.readUInt32BE();
}

export function startOfKey(key: Buffer): BlockStart {
  return {
    firstSeq: readUint64(key, FIRST_SEQ_OFFSET),
    position: readUint64(key, POSITION_OFFSET),
    openedAtMs: readUint64(key, OPENED_AT_OFFSET),
  };
}

/* Numbers up to 2^53-1 in two halves: BigInt would cost an allocation each. */

const HALF = 2 ** 32;

function writeUint64(key: Buffer, value: number, offset: number): void {
  key.writeUInt32BE(Math.floor(value / HALF), offset);
  key.writeUInt32BE(value % HALF, offset + 4);
}

function readUint64(key: Buffer, offset: number): number {
  return key.readUInt32BE(offset) * HALF + key.readUInt32BE(offset + 4);
}
