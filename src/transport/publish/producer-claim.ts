/**
 * Who a publish says that it is from, so that it is appended exactly once (contract 3.4).
 */

import { hash } from 'node:crypto';
import { isProducerId, PRODUCER_ID_LENGTH_MAX, parseCount } from '../../core/producer.js';
import { DIGEST_BYTES, KEY, PRODUCER } from '../../core/producer-record.js';
import { RequestError } from '../../errors.js';
import type { ProducerClaim } from '../../ring/claim-judge.js';
import type { RequestView } from '../http/request-view.js';

/** Which publish it is, as its publisher says; a member that is empty was not given. */
export interface ClaimText {
  readonly id: string;
  readonly epoch: string;
  readonly seq: string;
  readonly key: string;
}

/**
 * Reads the headers of a publish; null when it names neither a producer nor a key.
 * @throws {RequestError} `invalid_producer`
 */
export function readClaim(req: RequestView): ProducerClaim | null {
  return claimOf({
    id: req.getHeader('producer-id'),
    epoch: req.getHeader('producer-epoch'),
    seq: req.getHeader('producer-seq'),
    key: req.getHeader('idempotency-key'),
  });
}

/** Like `readClaim`. */
export function claimOf({ id, epoch, seq, key }: ClaimText): ProducerClaim | null {
  if (id === '' && epoch === '' && seq === '') return key === '' ? null : keyClaim(key);
  if (key !== '') throw invalid('a publish has a producer or a key, and not both');
  if (!isProducerId(id)) throw invalid(`Producer-Id: ${EXPECTED_ID}`);
  const counts = { epoch: readCount('Producer-Epoch', epoch), seq: readCount('Producer-Seq', seq) };
  return { kind: PRODUCER, digest: digestOfProducer(id), ...counts };
}

const EXPECTED_ID = `expected 1 to ${PRODUCER_ID_LENGTH_MAX} characters of printable ASCII`;

function keyClaim(key: string): ProducerClaim {
  if (!isProducerId(key)) throw invalid(`Idempotency-Key: ${EXPECTED_ID}`);
  return { kind: KEY, digest: digestOf(key), epoch: 0, seq: 0 };
}

function readCount(header: string, text: string): number {
  const count = parseCount(text);
  if (count === null) throw invalid(`${header}: expected a whole number from 0 to 2^53-1`);
  return count;
}

/** A producer sends its id with each request: an edge remembers digests of so many, and forgets the oldest first. */
const REMEMBERED_MAX = 1024;
const remembered = new Map<string, Int32Array>();

function digestOfProducer(id: string): Int32Array {
  const known = remembered.get(id);
  if (known !== undefined) return known;
  const digest = digestOf(id);
  if (remembered.size === REMEMBERED_MAX) {
    const [oldest] = remembered.keys();
    remembered.delete(oldest as string);
  }
  remembered.set(id, digest);
  return digest;
}

/** Ids of any length become as many bytes, too many for two ids to have the same by chance or by design. */
function digestOf(id: string): Int32Array {
  const { buffer, byteOffset } = hash('sha256', id, 'buffer');
  return new Int32Array(buffer.slice(byteOffset, byteOffset + DIGEST_BYTES));
}

function invalid(detail: string): RequestError {
  return new RequestError('invalid_producer', detail);
}
