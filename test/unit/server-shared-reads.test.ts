import assert from 'node:assert/strict';
import { test } from 'node:test';
import { SharedReads } from '#gapless/server/replay/shared-reads.js';
import type { LogRun } from '#gapless/storage/event-log.js';

const RUN: LogRun = { firstSeq: 1, lastSeq: 1, frames: new Uint8Array(7) };

/** Reads that end when the test says so, in the order in which they were begun. */
function stage() {
  const reads = new SharedReads(2);
  const begun: string[] = [];
  const ends: ((run: LogRun | Error) => void)[] = [];
  const take = (key: string): Promise<LogRun | null> =>
    reads.take(key, () => {
      begun.push(key);
      return new Promise((resolve, reject) =>
        ends.push((run) => (run instanceof Error ? reject(run) : resolve(run))),
      );
    });
  return { reads, begun, ends, take };
}

const turn = () => new Promise((resolve) => setImmediate(resolve));

test('identical reads are one, also while it waits for its turn, and the next one is another', async () => {
  const { reads, begun, ends, take } = stage();
  const asked = ['a', 'b', 'c', 'a', 'c', 'c'].map(take);
  assert.deepEqual(reads.stats, { reads: 2, shared: 3, bytes: 0, failed: 0, depth: 3 });
  ends[0]?.(RUN);
  await turn();
  assert.deepEqual(begun, ['a', 'b', 'c']);
  ends[1]?.(RUN);
  ends[2]?.(RUN);
  assert.deepEqual(new Set(await Promise.all(asked)), new Set([RUN]));
  assert.deepEqual(reads.stats, { reads: 3, shared: 3, bytes: 21, failed: 0, depth: 0 });
  void take('a');
  assert.deepEqual(begun, ['a', 'b', 'c', 'a']);
});

test('a read that fails does so for all who asked, and the others take their turn', async () => {
  const { reads, begun, ends, take } = stage();
  const asked = Promise.allSettled(['a', 'a', 'b', 'c'].map(take));
  ends[0]?.(new Error('it cannot be read'));
  await turn();
  assert.deepEqual(begun, ['a', 'b', 'c']);
  ends[1]?.(RUN);
  ends[2]?.(RUN);
  const outcomes = (await asked).map(({ status }) => status);
  assert.deepEqual(outcomes, ['rejected', 'rejected', 'fulfilled', 'fulfilled']);
  assert.equal(reads.stats.failed, 1);
});
