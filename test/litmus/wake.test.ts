import assert from 'node:assert/strict';
import { test } from 'node:test';
import { removeStream } from '#gapless/ring/lifecycle.js';
import { createRings, Rings } from '#gapless/ring/rings.js';
import { createWakes, Wakes } from '#gapless/ring/wake-queue.js';
import { seededPrng } from '../support/prng.js';
import { openRingStream } from '../unit/ring-open.js';
import { rounds } from './budget.js';
import { Crew } from './crew.js';
import type { PushOrder, PushWorkerData } from './wake-push-worker.js';
import type { WakeOrder, WakeReport, WakeWorkerData } from './wake-worker.js';

const STREAMS = 8;
const PUSHED_SLOTS = 4000;
/** Events of one publisher in a round. */
const EVENTS = 1500;

interface Cast {
  readonly publishers: number;
  readonly edges: number;
}

/** One set of threads for one round: publishers that append and tell, edges that sleep and read. */
async function round({ publishers, edges }: Cast, seed: number): Promise<number> {
  const buffers = createRings({ streamsMax: STREAMS, memoryBytes: 2 ** 22 });
  const rings = new Rings(buffers);
  const wakesBuffer = createWakes(edges, STREAMS);
  const wakes = new Wakes(wakesBuffer, rings);
  const streams = Array.from({ length: STREAMS }, (_, slot) =>
    openRingStream(rings, slot, { epoch: `litmus000${slot}`, dataBytesMax: 2 ** 18 }),
  );
  for (const { slot } of streams) for (let edge = 0; edge < edges; edge++) wakes.addInterest(slot, edge);
  const shared = {
    rings: buffers,
    wakes: wakesBuffer,
    streams,
    readCounts: new SharedArrayBuffer(4 * edges),
    appendedCount: new SharedArrayBuffer(4),
  };
  const data = [
    ...Array.from({ length: edges }, (_, index): WakeWorkerData => ({ ...shared, role: 'edge', index })),
    ...Array.from(
      { length: publishers },
      (_, index): WakeWorkerData => ({ ...shared, role: 'publisher', index }),
    ),
  ];
  const crew = new Crew<WakeOrder, WakeReport>(new URL('./wake-worker.js', import.meta.url), data);
  try {
    for (let edge = 0; edge < edges; edge++) crew.order(edge, { seed, events: publishers * EVENTS });
    for (let i = 0; i < publishers; i++) crew.order(edges + i, { seed, events: EVENTS });
    const counts = await crew.reports('an edge that has read the last event');
    for (const stream of streams) removeStream(rings, stream);
    return counts.reduce((sum, one) => sum + one, 0);
  } finally {
    await crew.end();
  }
}

for (const cast of [
  { publishers: 1, edges: 1 },
  { publishers: 2, edges: 2 },
]) {
  const { publishers, edges } = cast;
  test(`W1 the last append of ${publishers} publishers reaches ${edges} edges that sleep in between`, async (context) => {
    const prng = seededPrng(context);
    const budget = rounds(0.3);
    let slept = 0;
    while (budget.next()) slept += await round(cast, prng.below(2 ** 31));
    assert.ok(slept > 0, 'they really slept');
    context.diagnostic(`${budget.count * publishers * EVENTS} appends, ${slept} sleeps`);
  });
}

test('W1 publishers that queue slots at the same time lose none of them, and queue none twice', async (context) => {
  const publishers = 3;
  const buffers = createRings({ streamsMax: PUSHED_SLOTS, memoryBytes: 1024 });
  const wakesBuffer = createWakes(1, PUSHED_SLOTS);
  const wakes = new Wakes(wakesBuffer, new Rings(buffers));
  const start = new SharedArrayBuffer(4);
  const data = Array.from(
    { length: publishers },
    (_, index): PushWorkerData => ({ index, publishers, rings: buffers, wakes: wakesBuffer, start }),
  );
  const crew = new Crew<PushOrder, null>(new URL('./wake-push-worker.js', import.meta.url), data);
  const slots = Array.from({ length: PUSHED_SLOTS }, (_, slot) => slot);
  const budget = rounds(0.3);
  try {
    for (const slot of slots) wakes.addInterest(slot, 0);
    while (budget.next()) {
      crew.orderAll({ round: budget.count });
      await crew.reports('a publisher that has announced all slots');
      const taken: number[] = [];
      for (let slot = wakes.take(0); slot >= 0; slot = wakes.take(0)) taken.push(slot);
      assert.deepEqual(
        taken.toSorted((a, b) => a - b),
        slots,
      );
      for (const slot of slots) wakes.settle(slot, 0);
    }
  } finally {
    await crew.end();
  }
  context.diagnostic(`${budget.count * PUSHED_SLOTS} slots queued by ${publishers} publishers`);
});
