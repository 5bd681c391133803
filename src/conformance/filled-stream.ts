import { range } from './check.js';
import type { Target } from './target.js';

/** A stream with so many events, `event 1` and so on. */
export async function filledStream(
  target: Target,
  events: number,
  config: object = {},
): Promise<{ name: string; epoch: string }> {
  const stream = await target.createStream(config);
  const lines = range(1, events).map((seq) => `event ${seq}`);
  await target.publishLines(stream.name, lines);
  return stream;
}

const EVICTED_EVENT_BYTES = 1000;
const EVICTED_BATCH_EVENTS = 100;

/** A stream that has evicted its first events, and whose floor stands. */
export async function evictedStream(target: Target): Promise<{ name: string; epoch: string }> {
  const stream = await target.createStream({ retention: { events: 20 } });
  for (const batch of range(1, 3)) {
    const lines = range(1, EVICTED_BATCH_EVENTS).map((line) =>
      `${batch}/${line} `.padEnd(EVICTED_EVENT_BYTES, '.'),
    );
    await target.publishLines(stream.name, lines);
  }
  let before = 0;
  await target.eventually('eviction above twice the limit', async () => {
    const { floor } = await target.positions(stream.name);
    const stands = floor > 2 && floor === before;
    before = floor;
    return stands;
  });
  return stream;
}
