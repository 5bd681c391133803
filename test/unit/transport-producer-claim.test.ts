import assert from 'node:assert/strict';
import { test } from 'node:test';
import { claimOf } from '#gapless/transport/publish/producer-claim.js';

/** More than an edge remembers the digests of. */
const PRODUCERS = 3000;

function digestOf(id: string): string {
  const claim = claimOf({ id, epoch: '0', seq: '0', key: '' });
  assert.ok(claim !== null);
  return claim.digest.join();
}

test('3.4 of any number of producers each is told from all others, and known again', () => {
  const ids = Array.from({ length: PRODUCERS }, (_, i) => `producer-${i}`);
  const first = ids.map(digestOf);
  assert.equal(new Set(first).size, PRODUCERS);
  assert.deepEqual(ids.map(digestOf), first);
  assert.deepEqual([...ids].reverse().map(digestOf), [...first].reverse());
});
