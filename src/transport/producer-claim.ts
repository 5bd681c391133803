/**
 * Who a publish says that it is from, so that it is appended exactly once (contract 3.4).
 */

import { hash } from 'node:crypto';
import { isProducerId, PRODUCER_ID_LENGTH_MAX, parseCount } from '../core/producer.js';
import { DIGEST_BYTES, KEY, PRODUCER } from '../core/producer-record.js';
import { RequestError } from '../errors.js';
import type { ProducerClaim } from '../ring/claim-judge.js';
import type { RequestView } from './request-view.js';

/**
 * Reads the headers of a publish; null when it names neither a producer nor a key.
 * @throws {RequestError} `invalid_producer`
 */
export function readClaim(req: RequestView): ProducerClaim | null {
  const id = req.getHeader('producer-id');
  const key = req.getHeader('idempotency-key');
  const epochText = req.getHeader('producer-epoch');
  const seqText = req.getHeader('producer-seq');
  if (id === '' && epochText === '' && seqText === '') return key === '' ? null : keyClaim(key);
  if (key !== '') throw invalid('a publish has a producer or a key, and not both');
  if (!isProducerId(id)) throw invalid(`Producer-Id: ${EXPECTED_ID}`);
  const epoch = readCount('Producer-Epoch', epochText);
  const seq = readCount('Producer-Seq', seqText);
  return { kind: PRODUCER, digest: digestOf(id), epoch, seq };
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

/** Ids of any length become as many bytes, too many for two ids to have the same by chance or by design. */
function digestOf(id: string): Int32Array {
  const { buffer, byteOffset } = hash('sha256', id, 'buffer');
  return new Int32Array(buffer.slice(byteOffset, byteOffset + DIGEST_BYTES));
}

function invalid(detail: string): RequestError {
  return new RequestError('invalid_producer', detail);
}
