import assert from 'node:assert/strict';
import { test } from 'node:test';
import { SharedMedium } from '../support/memory-replicated-log.js';
import { ReplicaStage, twoBrokers } from './replica-stage.js';

const PUBLISHES_MAX = 1000;

/** As one that is farther from the log. */
async function turns(count: number): Promise<void> {
  for (let turn = 0; turn < count; turn++) await new Promise((resolve) => setImmediate(resolve));
}

for (const isExact of [true, false]) {
  const log = isExact ? 'a log that compares' : 'a log that does not compare';
  test(`3.1 who is far from ${log} publishes to a stream while somebody near never stops`, async () => {
    const medium = new SharedMedium();
    const near = await ReplicaStage.start({ medium, pause: () => turns(1) });
    const far = await ReplicaStage.start({ medium, pause: () => turns(4) });
    for (const { log } of [near, far]) log.isExact = isExact;
    await near.publish('s', ['first']);
    let published = 0;
    let isOver = false;
    const publishing = Array.from({ length: 4 }, async () => {
      while (!isOver && published < PUBLISHES_MAX) {
        published++;
        await near.publish('s', ['of the near']);
      }
    });
    for (let times = 0; times < 3; times++) await far.publish('s', ['of the far']);
    isOver = true;
    await Promise.all(publishing);
    assert.ok(published < PUBLISHES_MAX, 'it came only when the near had ended');
  });
}

test('3.1 who catches up with a stream comes to its end while somebody publishes faster than it reads', async () => {
  const medium = new SharedMedium();
  const fast = await ReplicaStage.start({ medium, pause: () => turns(1) });
  const slow = await ReplicaStage.start({ medium, pause: () => turns(8) });
  slow.log.isDeaf = true;
  await fast.publish('s', ['first']);
  let isOver = false;
  let published = 0;
  const publishing = (async () => {
    while (!isOver && published++ < PUBLISHES_MAX) await fast.publish('s', ['more']);
  })();
  await slow.replica.catchUp('s');
  await slow.replica.catchUp('s');
  isOver = true;
  await publishing;
  assert.ok(published < PUBLISHES_MAX, 'it came to the end only when no more came');
  assert.ok((slow.replica.find('s')?.entry.head ?? 0) > 1);
});

test('2.1, 3.1 who makes a stream at the same time as another broker has its publish in it', async () => {
  const { a, b } = await twoBrokers();
  for (const { log } of [a, b]) log.isExact = false;
  const placed = await Promise.all([
    a.publish('s', ['of a']),
    b.publish('s', ['of b']),
    b.publish('s', ['2']),
  ]);
  assert.deepEqual(new Set(placed.map(({ first }) => first)), new Set([1, 2, 3]));
  assert.deepEqual(new Set(await a.data('s')), new Set(['of a', 'of b', '2']));
});
