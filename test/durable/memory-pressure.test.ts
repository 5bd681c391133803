import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { range } from '../support/cursor.js';
import { useDurableBroker } from '../support/durable-broker.js';
import { readAll, stateOf } from '../support/gapless-client.js';
import { METRIC } from '../support/metric-names.js';
import { scrape, total } from '../support/prometheus.js';
import { SseSubscription } from '../support/sse-client.js';
import { FilledStream } from './filled-stream.js';

/** Fills the memory: a ring of 1 MiB for each batch of these, of 16 MiB in all. */
const STREAMS = 16;
const BATCH_EVENTS = 500;
const EVENT_BYTES = 1450;

for (const threads of [1, 3]) {
  describe(`more durable streams than memory, with --threads ${threads}`, () => {
    const broker = useDurableBroker(
      ...['--threads', String(threads), '--memory', '16MiB', '--ring-bytes', '4KiB'],
    );

    it('3.6 every publish finds memory, for the log has what is taken from other rings; no reader misses any (I1, I2, I5)', async () => {
      const { port } = broker;
      const streams = await Promise.all(
        range(1, 2 * STREAMS).map(() => FilledStream.create(port, { eventBytes: EVENT_BYTES })),
      );
      const followed = streams.slice(0, 4);
      const live = await Promise.all(
        followed.map(({ port, name }) => SseSubscription.open(port, name, { cursor: 'earliest' })),
      );
      // One after the other, then all at once: each takes what others had.
      for (const stream of streams) await stream.fill(BATCH_EVENTS);
      for (const _round of range(1, 3))
        await Promise.all(followed.map((stream) => stream.fill(BATCH_EVENTS)));
      for (const stream of streams) await stream.fill(1);

      for (const [index, subscription] of live.entries()) {
        const stream = followed[index] as FilledStream;
        await subscription.untilSeq(stream.head);
        stream.assertEvents(subscription.events, { first: 1, last: stream.head });
        subscription.cut();
      }
      for (const stream of streams) {
        const { committed, head, logFloor } = await stateOf(port, stream.name);
        assert.deepEqual([committed, head, logFloor], [stream.head, stream.head, 1]);
        stream.assertEvents(await readAll(port, stream.name), { first: 1, last: stream.head });
      }
      const metrics = await scrape(port);
      assert.equal(total(metrics, METRIC.publishesRefused, { reason: 'memory' }), 0);
      assert.ok(
        total(metrics, METRIC.reclaimedRings) > STREAMS / 2,
        'the memory was too large for this test',
      );
      assert.equal(total(metrics, METRIC.seamViolations), 0);
    });
  });
}
