import assert from 'node:assert/strict';
import { test } from 'node:test';
import { setImmediate as nextTurn } from 'node:timers/promises';
import { EdgeStream } from '#gapless/broker/edge-stream.js';
import { Replay, type Replayed } from '#gapless/broker/replay.js';

const config = { retention: { events: 0, bytes: 0, ageMs: 0 }, overflow: 'evict', ttlMs: 0 } as const;
const stream = new EdgeStream({ name: 's', slot: 0, generation: 1, epoch: 'epochepoch', config });

test('4.6 what could not be read for somebody who has left is no answer to who comes later', async () => {
  let isHere = true;
  const found: Replayed[] = [];
  const replay = new Replay({
    port: { read: () => Promise.reject(new Error('the disk is away')) },
    bytesMax: 100,
    cacheBytesMax: 1000,
    arrived: (_stream, afterSeq) => {
      if (isHere) found.push(replay.after(stream, afterSeq));
      return isHere;
    },
  });
  assert.equal(replay.after(stream, 1), 'waiting');
  await nextTurn();
  assert.deepEqual(found, ['failed'], 'who waits is told');
  isHere = false;
  assert.equal(replay.after(stream, 2), 'waiting');
  await nextTurn();
  assert.equal(replay.after(stream, 2), 'waiting', 'it is read again');
});
